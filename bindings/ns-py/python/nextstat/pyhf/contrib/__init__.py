"""Plots and downloads."""

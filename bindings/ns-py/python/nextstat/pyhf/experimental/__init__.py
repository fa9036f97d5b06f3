"""What pyhf calls experimental: modifiers of one's own."""

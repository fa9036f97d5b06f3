//! The Delaunay triangulation of points in a plane, and the contour of a function that is linear on
//! each triangle.
//!
//! Axes are scaled to unit ranges first. Four points on a circle, such as those of a rectangular
//! grid, have two Delaunay triangulations; which one is used depends on the points alone, not on
//! their order, because they come sorted.

use super::ExclusionError;
use delaunator::{EMPTY, Point, triangulate};
use serde::Serialize;
use std::collections::HashMap;

/// Distances in units of the ranges below which points are on one line, or one point.
pub(super) const SMALLEST_DISTANCE: f64 = 1e-9;

/// One piece of the boundary of the excluded region.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contour {
    /// Its vertices (x, y), one on every edge of the triangulation that it crosses, with the
    /// excluded side on the left; a closed contour ends with its first vertex.
    pub vertices: Vec<[f64; 2]>,
    /// Whether it begins and ends at the edge of the grid; otherwise it is closed.
    pub ends_at_edge: bool,
}

/// The excluded part of the plane, by the observation or by one expectation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ExclusionCurve {
    /// Its boundary inside the grid.
    pub contours: Vec<Contour>,
    /// The excluded region: closed rings of vertices (x, y) with it on the left, so that holes run
    /// clockwise. They follow the edge of the grid where contours end.
    pub region: Vec<Vec<[f64; 2]>>,
}

/// A triangulation of N points. The half-edge h = 3 t + k leads from the k-th corner of the
/// triangle t to the next; all triangles turn the same way.
pub(super) struct Mesh {
    /// The points (x, y) as given (N).
    points: Vec<[f64; 2]>,
    /// The point where each half-edge starts.
    starts: Vec<usize>,
    /// The half-edge of the neighbouring triangle; `None` at the edge of the grid.
    opposites: Vec<Option<usize>>,
    /// Whether the triangle of each half-edge is left out.
    is_left_out: Vec<bool>,
    /// Whether triangles turn clockwise in x and y.
    is_clockwise: bool,
}

/// A contour as it is traced.
struct Trace {
    vertices: Vec<[f64; 2]>,
    /// The half-edge where it ends at the edge of the grid; `None` if it is closed.
    exit: Option<usize>,
}

impl Mesh {
    /// Triangulates `points` (N × 2), which are sorted, in x and y or in x and x - y.
    ///
    /// # Errors
    /// Fewer than three points, or points on one line.
    pub(super) fn new(points: &[[f64; 2]], mass_splitting: bool) -> Result<Self, ExclusionError> {
        if points.len() < 3 {
            return Err(ExclusionError::TooFew { n_points: points.len() });
        }
        let scaled = scaled(points, mass_splitting).filter(|scaled| !are_on_line(scaled));
        let scaled = scaled.ok_or(ExclusionError::OnLine { n_points: points.len() })?;
        let corners: Vec<Point> = scaled.iter().map(|&[x, y]| Point { x, y }).collect();
        let found = triangulate(&corners);
        let opposites = found.halfedges.iter().map(|&opposite| (opposite != EMPTY).then_some(opposite)).collect();
        let is_left_out = vec![false; found.triangles.len()];
        let mut mesh =
            Self { points: points.to_vec(), starts: found.triangles, opposites, is_left_out, is_clockwise: false };
        mesh.leave_out_slivers(&scaled);
        mesh.is_clockwise = mesh.kept().map(|h| mesh.turn(h, points)).sum::<f64>() < 0.0;
        Ok(mesh)
    }

    /// Leaves out triangles without area at the edge, which rounding makes of points on one line:
    /// their longest side would pass over the point between its ends.
    fn leave_out_slivers(&mut self, scaled: &[[f64; 2]]) {
        let is_sliver = |mesh: &Self, h: usize| {
            let [[ax, ay], [bx, by]] = [mesh.starts[h], mesh.end(h)].map(|point| scaled[point]);
            mesh.turn(h, scaled).abs() < SMALLEST_DISTANCE * (bx - ax).hypot(by - ay)
        };
        let mut open: Vec<usize> = (0..self.starts.len()).filter(|&h| self.opposites[h].is_none()).collect();
        while let Some(h) = open.pop() {
            if self.is_left_out[h] || !is_sliver(self, h) {
                continue;
            }
            for side in [h, next(h), next(next(h))] {
                self.is_left_out[side] = true;
                if let Some(opposite) = self.opposites[side].take() {
                    self.opposites[opposite] = None;
                    open.push(opposite);
                }
            }
        }
    }

    /// Returns the half-edges of the triangles that are used.
    fn kept(&self) -> impl Iterator<Item = usize> {
        (0..self.starts.len()).filter(|&h| !self.is_left_out[h])
    }

    fn end(&self, h: usize) -> usize {
        self.starts[next(h)]
    }

    /// Returns twice the area of the triangle of `h`, negative if it turns clockwise.
    fn turn(&self, h: usize, points: &[[f64; 2]]) -> f64 {
        let [a, b, c] = [h, next(h), next(next(h))].map(|h| points[self.starts[h]]);
        (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    }

    /// Returns the points on edges that contours cross, each once.
    pub(super) fn beside_contours(&self, excess: &[f64]) -> Vec<usize> {
        let crossed = self.kept().filter(|&h| (excess[self.starts[h]] > 0.0) != (excess[self.end(h)] > 0.0));
        let mut points: Vec<usize> = crossed.flat_map(|h| [self.starts[h], self.end(h)]).collect();
        points.sort_unstable();
        points.dedup();
        points
    }

    /// Returns the region where `excess` (N), interpolated linearly, is positive.
    pub(super) fn curve(&self, excess: &[f64]) -> ExclusionCurve {
        let traces = self.traces(excess);
        let mut region = self.rings(excess, &traces);
        let mut contours: Vec<Contour> = traces
            .into_iter()
            .map(|(_, trace)| Contour { vertices: trace.vertices, ends_at_edge: trace.exit.is_some() })
            .collect();
        let lines = contours.iter_mut().map(|contour| &mut contour.vertices).chain(&mut region);
        for vertices in lines {
            if self.is_clockwise {
                vertices.reverse();
            }
            vertices.dedup();
        }
        ExclusionCurve { contours, region }
    }

    /// Returns the contours with the half-edges where they begin: first those that end at the edge
    /// of the grid.
    ///
    /// A contour enters a triangle across the one half-edge that leads from an excluded point to
    /// one that is not, and leaves it across the one that leads back.
    fn traces(&self, excess: &[f64]) -> Vec<(usize, Trace)> {
        let enters = |h: &usize| self.enters(*h, excess);
        let (open, inner): (Vec<usize>, Vec<usize>) =
            self.kept().filter(enters).partition(|&h| self.opposites[h].is_none());
        let mut is_done = vec![false; self.starts.len()];
        let mut traces = Vec::new();
        for first in open.into_iter().chain(inner) {
            if !is_done[first] {
                traces.push((first, self.trace(first, excess, &mut is_done)));
            }
        }
        traces
    }

    fn enters(&self, h: usize, excess: &[f64]) -> bool {
        excess[self.starts[h]] > 0.0 && excess[self.end(h)] <= 0.0
    }

    fn trace(&self, first: usize, excess: &[f64], is_done: &mut [bool]) -> Trace {
        let mut vertices = vec![self.crossing(first, excess)];
        let mut entry = first;
        loop {
            is_done[entry] = true;
            let others = [next(entry), next(next(entry))];
            let exit = others[usize::from(excess[self.end(others[0])] <= 0.0)];
            vertices.push(self.crossing(exit, excess));
            match self.opposites[exit] {
                None => return Trace { vertices, exit: Some(exit) },
                Some(opposite) if is_done[opposite] => return Trace { vertices, exit: None },
                Some(opposite) => entry = opposite,
            }
        }
    }

    /// Returns where `excess` is 0 on the half-edge `h`, the same for both directions.
    fn crossing(&self, h: usize, excess: &[f64]) -> [f64; 2] {
        let (a, b) = (self.starts[h].min(self.end(h)), self.starts[h].max(self.end(h)));
        let share = excess[a] / (excess[a] - excess[b]);
        let between = |axis: usize| self.points[a][axis] + share * (self.points[b][axis] - self.points[a][axis]);
        [between(0), between(1)]
    }

    /// Returns closed rings round the region: contours, joined along the edge of the grid.
    fn rings(&self, excess: &[f64], traces: &[(usize, Trace)]) -> Vec<Vec<[f64; 2]>> {
        let edge: HashMap<usize, usize> =
            self.kept().filter(|&h| self.opposites[h].is_none()).map(|h| (self.starts[h], h)).collect();
        let begins: HashMap<usize, usize> = traces.iter().enumerate().map(|(i, (first, _))| (*first, i)).collect();
        let mut is_used = vec![false; traces.len()];
        let mut rings = Vec::new();
        for i in 0..traces.len() {
            let (mut current, mut ring) = (Some(i), Vec::new());
            while let Some(k) = current.filter(|&k| !is_used[k]) {
                is_used[k] = true;
                ring.extend_from_slice(&traces[k].1.vertices);
                let exit = traces[k].1.exit;
                current = exit
                    .and_then(|exit| self.follow_edge(exit, excess, &edge, &mut ring))
                    .and_then(|h| begins.get(&h).copied());
            }
            if let Some(&first) = ring.first() {
                ring.push(first);
                rings.push(ring);
            }
        }
        if edge.keys().all(|&point| excess[point] > 0.0) {
            rings.extend(self.whole_edge(&edge));
        }
        rings
    }

    /// Adds the excluded points of the edge after the half-edge `exit`, and returns the half-edge
    /// where a contour begins.
    fn follow_edge(
        &self,
        exit: usize,
        excess: &[f64],
        edge: &HashMap<usize, usize>,
        ring: &mut Vec<[f64; 2]>,
    ) -> Option<usize> {
        let mut point = self.end(exit);
        for _ in 0..edge.len() {
            ring.push(self.points[point]);
            let h = *edge.get(&point)?;
            if self.enters(h, excess) {
                return Some(h);
            }
            point = self.end(h);
        }
        None
    }

    /// Returns the closed edge of the grid.
    fn whole_edge(&self, edge: &HashMap<usize, usize>) -> Option<Vec<[f64; 2]>> {
        let first = *edge.keys().min()?;
        let mut ring = vec![self.points[first]];
        let mut point = first;
        for _ in 0..edge.len() {
            point = self.end(*edge.get(&point)?);
            ring.push(self.points[point]);
            if point == first {
                break;
            }
        }
        Some(ring)
    }
}

fn next(h: usize) -> usize {
    if h % 3 == 2 { h - 2 } else { h + 1 }
}

/// Returns the points with both coordinates scaled to 0 … 1; `None` if one of them does not vary.
fn scaled(points: &[[f64; 2]], mass_splitting: bool) -> Option<Vec<[f64; 2]>> {
    let coordinates = |&[x, y]: &[f64; 2]| if mass_splitting { [x, x - y] } else { [x, y] };
    let plane: Vec<[f64; 2]> = points.iter().map(coordinates).collect();
    let ends = [0, 1].map(|axis| {
        let values = plane.iter().map(|point| point[axis]);
        (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
    });
    let varies = ends.iter().all(|(lowest, highest)| highest > lowest && (highest - lowest).is_finite());
    let unit = |point: &[f64; 2]| [0, 1].map(|axis| (point[axis] - ends[axis].0) / (ends[axis].1 - ends[axis].0));
    varies.then(|| plane.iter().map(unit).collect())
}

/// Returns whether all points are on the line through the first and the last, which are the
/// farthest apart along the first axis.
fn are_on_line(points: &[[f64; 2]]) -> bool {
    let (Some(&[ax, ay]), Some(&[bx, by])) = (points.first(), points.last()) else { return true };
    let length = (bx - ax).hypot(by - ay);
    points.iter().all(|[x, y]| {
        let height = (bx - ax) * (y - ay) - (by - ay) * (x - ax);
        height.abs() < SMALLEST_DISTANCE * length
    })
}

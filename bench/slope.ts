/** Slope of the straight line through points, by least squares. */
export function slopeOf(points: readonly (readonly [x: number, y: number])[]): number {
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / points.length;
  const meanY = points.reduce((sum, [, y]) => sum + y, 0) / points.length;
  const products = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0);
  return products / points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
}

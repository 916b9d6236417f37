const VERSION = /^v(\d+)(?:(alpha|beta)(\d+))?$/;
const STAGES = [undefined, 'beta', 'alpha'];

/** Order of preference: v2, v1, v1beta1, v1alpha1, others by name. Source: apimachinery pkg/version/helpers.go. */
export function compareVersions(one: string, other: string): number {
  const [left, right] = [VERSION.exec(one), VERSION.exec(other)];
  if (left === null || right === null) {
    if (left !== null || right !== null) return left === null ? 1 : -1;
    return one < other ? -1 : Number(one > other);
  }
  return (
    STAGES.indexOf(left[2]) - STAGES.indexOf(right[2]) ||
    Number(right[1]) - Number(left[1]) ||
    Number(right[3] ?? 0) - Number(left[3] ?? 0)
  );
}

/** A number, or a percentage of a total. Source: apimachinery pkg/util/intstr. */
import type { IntOrString } from '../../shared/kinds/types.ts';

/** Undefined: the text is no percentage. */
export function scaledValue(value: IntOrString, total: number, round: 'up' | 'down'): number | undefined {
  if (typeof value === 'number') return value;
  const match = /^(\d+)%$/.exec(value);
  if (match === null) return undefined;
  // Whole numbers: a product of fractions would depend on rounding.
  const hundredths = Number(match[1]) * total;
  return round === 'up' ? Math.ceil(hundredths / 100) : Math.floor(hundredths / 100);
}

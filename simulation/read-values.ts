/** Values that several parts of a scenario file have: durations, quantities, taints. */
import { defined } from '../shared/defined.ts';
import type { Taint, TaintEffect } from '../shared/kubernetes/kubernetes.ts';
import { parseDurationMs } from './duration.ts';
import type { Quantity, TaintPattern } from './scenario.ts';
import { type Faults, readList, readMap, readText, readWord, type Source, saidOf } from './yaml-source.ts';

const DURATION_EXPECTED = 'a duration with its unit, such as 90s, 5m or 1h30m';

export function readDurationMs(source: Source | undefined, faults: Faults, leastMs = 0): number | undefined {
  if (source === undefined) return undefined;
  const durationMs = source.kind === 'scalar' ? parseDurationMs(source.text) : undefined;
  if (durationMs === undefined) {
    faults.add(source, `expected ${DURATION_EXPECTED}`, saidOf(source));
    return undefined;
  }
  if (durationMs >= leastMs) return durationMs;
  faults.add(
    source,
    leastMs > 0 ? 'expected a duration above 0s' : 'expected a duration of 0s or more',
    saidOf(source),
  );
  return undefined;
}

function boundOf(source: Source | undefined, unit: 'number' | 'duration', faults: Faults): number | undefined {
  if (source === undefined) return undefined;
  if (unit === 'duration') return readDurationMs(source, faults, Number.NEGATIVE_INFINITY);
  if (source.kind === 'scalar' && typeof source.value === 'number') return source.value;
  faults.add(source, 'expected a number, or {min, max}', saidOf(source));
  return undefined;
}

/** A value, or `{min, max}`. */
export function readQuantity(
  source: Source | undefined,
  unit: 'number' | 'duration',
  faults: Faults,
): Quantity | undefined {
  if (source === undefined) return undefined;
  if (source.kind !== 'map') {
    const value = boundOf(source, unit, faults);
    return value === undefined ? undefined : { min: value, max: value };
  }
  const fields = readMap(source, ['min', 'max'], faults);
  const min = boundOf(fields?.get('min'), unit, faults);
  const max = boundOf(fields?.get('max'), unit, faults);
  if (fields !== undefined && fields.size === 0) faults.add(source, 'expected min, max or both');
  if (min !== undefined && max !== undefined && min > max) faults.add(source, 'expected min to be at most max');
  return { min, max };
}

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const;
const TAINT = /^([^=:\s]+)(?:=([^:\s]*))?(?::([A-Za-z]+))?$/;
const isEffect = (text: string | undefined): text is TaintEffect => EFFECTS.some((effect) => effect === text);

/** `key[=value]:Effect`; with `effectOptional` the effect may be left out, as `kubectl taint` allows in removing. */
export function readTaintPattern(
  source: Source,
  faults: Faults,
  options: { readonly effectOptional?: boolean } = {},
): TaintPattern | undefined {
  const text = readText(source, faults);
  if (text === undefined) return undefined;
  const match = TAINT.exec(options.effectOptional === true ? text.replace(/-$/, '') : text);
  const [, key, value, effect] = match ?? [];
  if (key !== undefined && effect === undefined && options.effectOptional === true) return { key, value, effect };
  if (key === undefined || !isEffect(effect)) {
    faults.add(source, `expected key[=value]:Effect with an effect of ${EFFECTS.join(', ')}`, JSON.stringify(text));
    return undefined;
  }
  return { key, value, effect };
}

export const readTaintPatterns = (
  source: Source | undefined,
  faults: Faults,
  options: { readonly effectOptional?: boolean } = {},
): TaintPattern[] | undefined =>
  readList(source, faults)?.flatMap((item) => readTaintPattern(item, faults, options) ?? []);

/** Taints to put on: `key[=value]:Effect`, or a map as in a Node. */
export function readTaints(source: Source | undefined, faults: Faults): Taint[] | undefined {
  return readList(source, faults)?.flatMap((item): Taint[] => {
    if (item.kind !== 'map') {
      const pattern = readTaintPattern(item, faults);
      if (pattern?.effect === undefined) return [];
      const { key, value, effect } = pattern;
      return [value === undefined ? { key, effect } : { key, value, effect }];
    }
    const fields = readMap(item, ['key', 'value', 'effect', 'timeAdded'], faults);
    const key = readText(fields?.get('key'), faults);
    const effect = readWord(fields?.get('effect'), EFFECTS, faults);
    if (key === undefined || effect === undefined) {
      faults.add(item, 'expected key and effect');
      return [];
    }
    const value = readText(fields?.get('value'), faults);
    const timeAdded = readText(fields?.get('timeAdded'), faults);
    return [{ key, effect, ...defined({ value }), ...defined({ timeAdded }) }];
  });
}

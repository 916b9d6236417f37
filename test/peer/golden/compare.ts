/** Compares what a step printed with what was recorded. Pure. */
import { diff } from 'node:util';
import type { ComparedAs, GoldenCase, GoldenStep } from './case.ts';

export interface Printed {
  /** Absent when a signal ended kubectl. */
  readonly exitCode: number | undefined;
  /** Normalised. */
  readonly stdout: string;
  /** Normalised. */
  readonly stderr: string;
}

/** What differs, as lines for a person; empty when the step passes. `step` carries the variant of the release. */
export function compareStep(golden: GoldenCase, step: GoldenStep, printed: Printed): string[] {
  if (step.check === 'none') return [];
  const problems = compareExit(step, printed.exitCode);
  if (step.check === 'exit') {
    return problems.length === 0 ? [] : [...problems, ...indent(printed.stdout), ...indent(printed.stderr)];
  }
  const prepare = (text: string, isStdout: boolean): string => prepared(golden, step, text, isStdout);
  problems.push(
    ...compareStream(
      'stdout',
      step.stdout_as,
      step.stdout_match,
      prepare(step.stdout ?? '', true),
      prepare(printed.stdout, true),
    ),
    ...compareStream(
      'stderr',
      step.stderr_as,
      step.stderr_match,
      prepare(step.stderr ?? '', false),
      prepare(printed.stderr, false),
    ),
  );
  return problems;
}

function compareExit(step: GoldenStep, exitCode: number | undefined): string[] {
  if (step.exit === null) return [];
  const agree =
    step.exit_as === 'nonzero' || step.check === 'exit'
      ? (step.exit === 0) === (exitCode === 0)
      : step.exit === exitCode;
  return agree ? [] : [`exit: wanted ${step.exit}, got ${exitCode ?? 'a signal'}`];
}

function prepared(golden: GoldenCase, step: GoldenStep, text: string, isStdout: boolean): string {
  let out = text;
  for (const [pattern, replacement] of [...(golden.normalise ?? []), ...(step.normalise ?? [])]) {
    out = out.replace(new RegExp(pattern, 'gm'), replacement);
  }
  const ignored = [...(golden.ignore ?? []), ...(step.ignore ?? [])].map((pattern) => new RegExp(pattern));
  const kept = isStdout && step.keep !== undefined ? new RegExp(step.keep) : undefined;
  if (ignored.length === 0 && kept === undefined) return out;
  const ended = out.endsWith('\n');
  const lines = (ended ? out.slice(0, -1) : out)
    .split('\n')
    .filter((line) => !ignored.some((pattern) => pattern.test(line)))
    .filter((line) => kept === undefined || kept.test(line));
  return lines.length === 0 ? '' : lines.join('\n') + (ended ? '\n' : '');
}

function compareStream(
  name: string,
  as: ComparedAs | undefined,
  patterns: readonly string[] | undefined,
  wanted: string,
  got: string,
): string[] {
  switch (as) {
    case 'any':
      return [];
    case 'match': {
      const missing = (patterns ?? []).filter((pattern) => !new RegExp(pattern, 'm').test(got));
      return missing.length === 0
        ? []
        : [...missing.map((pattern) => `${name}: nothing matches ${pattern}`), ...indent(got)];
    }
    case 'set':
      return differences(name, sorted(wanted), sorted(got));
    case 'json':
      return differences(name, canonicalJson(wanted), canonicalJson(got));
    case undefined:
      return differences(name, wanted, got);
  }
}

const sorted = (text: string): string => text.split('\n').sort().join('\n');
const indent = (text: string): string[] =>
  text === ''
    ? []
    : text
        .replace(/\n$/, '')
        .split('\n')
        .map((line) => `    ${line}`);

/** Sorts keys; removes managedFields, and kind and apiVersion of list items. Text that is not JSON is unchanged. */
function canonicalJson(text: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text;
  }
  const { items } = (value ?? {}) as { items?: unknown };
  if (Array.isArray(items)) {
    for (const item of items as Record<string, unknown>[]) {
      delete item['kind'];
      delete item['apiVersion'];
    }
  }
  return JSON.stringify(inOrder(value), undefined, 1);
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== 'managedFields')
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, inOrder(inner)]),
  );
}

function differences(name: string, wanted: string, got: string): string[] {
  return wanted === got ? [] : [`${name}: - wanted, + got`, ...lineDiff(wanted.split('\n'), got.split('\n'))];
}

/** Lines of unchanged text shown around a change. */
const CONTEXT = 2;
const SIGNS = { '-1': '+', 0: ' ', 1: '-' } as const;

function lineDiff(wanted: readonly string[], got: readonly string[]): string[] {
  const lines = diff(wanted, got);
  const near = lines.map((_, at) =>
    lines.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some(([sign]) => sign !== 0),
  );
  return lines.filter((_, at) => near[at]).map(([sign, line]) => `    ${SIGNS[sign]} ${line}`);
}

/** The outcome of a drill as a table. */
import type { Phase } from './drill.ts';

const HEADINGS = [
  'home',
  'build',
  'no answer',
  'false marks',
  'lost writes',
  'containers restarted',
  'rollout',
  'load per core',
];

const seconds = (value: number): string => `${value.toFixed(1)} s`;

const cellsOf = (phase: Phase): readonly string[] => [
  phase.home,
  phase.build,
  seconds(phase.silentSeconds),
  String(phase.falseMarks.length),
  `${phase.lostWrites.length} of ${phase.acknowledgedWrites}`,
  `${phase.restartedContainers} of ${phase.containers}`,
  phase.rolloutSeconds === undefined ? 'not finished' : seconds(phase.rolloutSeconds),
  phase.loadPerCore.toFixed(1),
];

export function phaseTable(phases: readonly Phase[]): string {
  const rows = [HEADINGS, ...phases.map(cellsOf)];
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** What a row counts, by name: at most ten of each. */
export function faultsOf({ build, falseMarks, lostWrites }: Phase): readonly string[] {
  const named = (what: string, names: readonly string[]): readonly string[] =>
    names.length === 0 ? [] : [`${build}: ${what}: ${names.slice(0, 10).join(' ')}${names.length > 10 ? ' …' : ''}`];
  return [...named('false marks', falseMarks), ...named('lost writes', lostWrites)];
}

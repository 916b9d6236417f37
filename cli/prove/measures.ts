/** Types that tie each fact to its measurement. */
import type { Measuring } from './calls.ts';
import type { Fact } from './verdict.ts';

// biome-ignore lint/suspicious/noExplicitAny: facts of different measurements
export type FactTable = Readonly<Record<string, Fact<any>>>;

type MeasuredOf<F> = F extends Fact<infer Measured> ? Measured : never;

/** For each fact of a table, how what it evaluates is measured. Throws: it could not be measured. */
export type MeasuresOf<Table extends FactTable> = {
  readonly [Id in keyof Table]: (measuring: Measuring) => Promise<MeasuredOf<Table[Id]>>;
};

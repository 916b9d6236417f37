/** All facts, in the order of the report. */
import type { Measuring } from './calls.ts';
import { DYNAMODB_FACTS } from './dynamodb-facts.ts';
import { EC2_FACTS } from './ec2-facts.ts';
import { MEASURE_DYNAMODB } from './measure/dynamodb.ts';
import { MEASURE_EC2 } from './measure/ec2.ts';
import type { FactTable, MeasuresOf } from './measures.ts';
import type { Fact, Verdict } from './verdict.ts';

export interface ListedFact extends Pick<Fact<unknown>, 'sentence' | 'source' | 'expected'> {
  readonly id: string;
  /** It looks on for the window of the run, beside others. */
  readonly observes: boolean;
  /** It throttles or stops parts of the cluster. */
  readonly disturbs: boolean;
  /** @throws when it cannot be measured */
  prove(measuring: Measuring): Promise<Verdict & { readonly measured: unknown }>;
}

const OBSERVING: ReadonlySet<string> = new Set();
const DISTURBING: ReadonlySet<string> = new Set();

function listed<Table extends FactTable>(facts: Table, measures: MeasuresOf<Table>): ListedFact[] {
  return Object.entries(facts).map(([id, { sentence, source, expected, evaluate }]) => ({
    ...{ id, sentence, source, expected },
    observes: OBSERVING.has(id),
    disturbs: DISTURBING.has(id),
    async prove(measuring) {
      const measured = await measures[id as keyof Table](measuring);
      return { measured, ...evaluate(measured) };
    },
  }));
}

export const FACTS: readonly ListedFact[] = [
  ...listed(DYNAMODB_FACTS, MEASURE_DYNAMODB),
  ...listed(EC2_FACTS, MEASURE_EC2),
];

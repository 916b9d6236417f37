/** All facts, in the order of the report. */
import type { Measuring } from './calls.ts';
import { DYNAMODB_FACTS } from './dynamodb-facts.ts';
import { EC2_FACTS } from './ec2-facts.ts';
import { HTTP_FACTS } from './http-facts.ts';
import { LOG_FACTS } from './log-facts.ts';
import { MEASURE_DYNAMODB } from './measure/dynamodb.ts';
import { MEASURE_EC2 } from './measure/ec2.ts';
import { MEASURE_HTTP } from './measure/http.ts';
import { MEASURE_LOGS } from './measure/logs.ts';
import { MEASURE_TIME } from './measure/time.ts';
import type { FactTable, MeasuresOf } from './measures.ts';
import { TIME_FACTS } from './time-facts.ts';
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

const OBSERVING: ReadonlySet<string> = new Set(Object.keys(TIME_FACTS));
const DISTURBING: ReadonlySet<string> = new Set([
  'http-api-stopped-function',
  'url-stopped-function',
  'url-abandoned-stream',
  'http-api-throttle',
]);

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
  ...listed(HTTP_FACTS, MEASURE_HTTP),
  ...listed(LOG_FACTS, MEASURE_LOGS),
  ...listed(TIME_FACTS, MEASURE_TIME),
  ...listed(DYNAMODB_FACTS, MEASURE_DYNAMODB),
  ...listed(EC2_FACTS, MEASURE_EC2),
];

/** The filter of the view Decisions, as the query of its address. */
import { DECISION_ACTS } from '../../shared/decisions/decision-record.ts';

const ABOUTS = ['cluster', 'node', 'pod', 'all'] as const;

export interface DecisionFilter {
  readonly about: (typeof ABOUTS)[number];
  /** Of the node; NAMESPACE/NAME of the pod. */
  readonly name: string;
  /** '': all. */
  readonly act: string;
  /** '': all. */
  readonly zone: string;
  readonly hours: number;
}

/** Hours. */
export const DECISION_SPANS: readonly (readonly [hours: number, text: string])[] = [
  [1, 'last hour'],
  [24, 'last 24 hours'],
  [168, 'last 7 days'],
  [720, 'last 30 days'],
];
const HOURS_DEFAULT = 24;

/** A value that is not one of the choices is that of an address without it. */
export function decisionFilterOf(query: URLSearchParams): DecisionFilter {
  const about = ABOUTS.find((each) => each === query.get('about')) ?? 'cluster';
  const act = query.get('act') ?? '';
  const hours = Number(query.get('hours'));
  return {
    about,
    name: query.get('name') ?? '',
    act: DECISION_ACTS.some((each) => each === act) ? act : '',
    zone: about === 'cluster' ? (query.get('zone') ?? '') : '',
    hours: DECISION_SPANS.some(([each]) => each === hours) ? hours : HOURS_DEFAULT,
  };
}

/** Parts of the query: '' for what an address without it means. */
export const queryOfDecisions = ({ about, name, act, zone, hours }: DecisionFilter): Record<string, string> => ({
  about: about === 'cluster' ? '' : about,
  name,
  act,
  zone,
  hours: hours === HOURS_DEFAULT ? '' : String(hours),
});

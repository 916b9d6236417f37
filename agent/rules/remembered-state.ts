/**
 * The pods that a machine ran last, as they are kept on its disk. After a restart without the API they run again.
 * Secrets and tokens are sealed in one text. The state belongs to one node of one cluster.
 */
import { defined } from '../../shared/defined.ts';
import type { KubePod, ResourceList } from '../../shared/kinds/types.ts';
import { recordOf, recordsOf } from '../../shared/kubernetes/normal-form.ts';
import type { GenerationRead } from '../ports/state-generations.ts';
import type { ConfigObject, ObjectKind } from './pod-objects.ts';

/** Another layout is not read: the machine then waits for the API, as without a state. */
const LAYOUT = 1;
/** Of the state, in the root directory of the agent. */
export const REMEMBERED_DIRECTORY = 'remembered';
/** Start of the complaint when the newest state is not on disk. */
export const NOT_REMEMBERED = 'the pods of this machine cannot be remembered';

export interface RememberedObject {
  readonly namespace: string;
  readonly kind: ObjectKind;
  readonly name: string;
  readonly object: ConfigObject;
}

/** A service account token. It may have expired: a pod finds its file, and the API is away anyway. */
export interface RememberedToken {
  readonly podUid: string;
  /** Which of the tokens of the pod (tokenKey). */
  readonly key: string;
  readonly token: string;
}

/** What is sealed. */
export interface RememberedSecrets {
  readonly secrets: readonly RememberedObject[];
  readonly tokens: readonly RememberedToken[];
}

export interface RememberedPods {
  /** Without version, and of the status only the start of a pod with a deadline: no other report of ours matters. */
  readonly pods: readonly KubePod[];
  readonly configMaps: readonly RememberedObject[];
  /** Address of this machine for its pods; absent before the Node had one. */
  readonly hostIp?: string;
  /** What pods may use of this machine. */
  readonly allocatable?: ResourceList;
}

export interface Owner {
  readonly nodeName: string;
  readonly clusterId: string;
}

export type ParsedState =
  | { readonly kind: 'usable'; readonly state: RememberedPods; readonly sealed: string | undefined }
  | { readonly kind: 'refused'; readonly why: string };

type UsableState = Extract<ParsedState, { kind: 'usable' }>;

export interface States {
  /** The newest one that can be used; undefined: none. */
  readonly newest: UsableState | undefined;
  /** Why newer ones cannot be used. */
  readonly refusals: readonly string[];
  /** Any of them has Secrets. */
  readonly hasSecrets: boolean;
}

/** @param reads newest first */
export function statesOf(reads: readonly GenerationRead[], owner: Owner): States {
  const states = reads.map((each) => (each.kind === 'failed' ? refused(each.why) : parseState(each.text, owner)));
  const newest = states.find((each) => each.kind === 'usable');
  const newer = newest === undefined ? states : states.slice(0, states.indexOf(newest));
  return {
    newest,
    refusals: newer.flatMap((each) => (each.kind === 'refused' ? [each.why] : [])),
    hasSecrets: states.some((each) => each.kind === 'usable' && each.sealed !== undefined),
  };
}

/** The parts of a pod that decide what runs. */
export function rememberedPod({ status, metadata, ...pod }: KubePod): KubePod {
  const { resourceVersion: _, managedFields: __, generation: ___, ...kept } = metadata;
  const startTime = pod.spec?.activeDeadlineSeconds === undefined ? undefined : status?.startTime;
  return { ...pod, metadata: kept, ...(startTime && { status: { startTime } }) };
}

export function stateText({ nodeName, clusterId }: Owner, state: RememberedPods, sealed: string | undefined): string {
  return JSON.stringify({ layout: LAYOUT, nodeName, clusterId, state, ...defined({ sealed }) });
}

/** @param text what `stateText` returned, or another program wrote */
export function parseState(text: string, owner: Owner): ParsedState {
  const { layout, state, sealed, ...found } = recordOf(parsed(text));
  if (layout !== LAYOUT) return refused(`its layout is ${JSON.stringify(layout)}, not ${LAYOUT}`);
  for (const field of ['nodeName', 'clusterId'] as const) {
    if (found[field] !== owner[field]) return refused(`its ${field} is ${JSON.stringify(found[field])}`);
  }
  // Of this layout only we write it, as a whole.
  return { kind: 'usable', state: state as RememberedPods, sealed: sealed as string | undefined };
}

/** @returns nothing for a text that is none of ours */
export function parseSecrets(text: string): RememberedSecrets {
  const read = recordOf(parsed(text));
  return {
    secrets: recordsOf(read['secrets']) as unknown as RememberedObject[],
    tokens: recordsOf(read['tokens']) as unknown as RememberedToken[],
  };
}

const refused = (why: string): Extract<ParsedState, { kind: 'refused' }> => ({ kind: 'refused', why });

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

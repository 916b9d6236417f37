/**
 * Whether the resources of a pod can be aligned on NUMA nodes as the policy requires.
 * Source: scope_*.go in pkg/kubelet/cm/topologymanager, pkg/kubelet/cm/admission/errors.go. The QoS class does not
 * matter.
 */
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { type Container, containersOf } from '../pod-containers.ts';
import type { Hint, ProviderHints } from './hint.ts';
import { decideTopology, type TopologySettings } from './policy.ts';

export type Allocated<State> =
  | { readonly kind: 'allocated'; readonly state: State }
  /** `reason` if the error has its own. */
  | { readonly kind: 'failed'; readonly message: string; readonly reason?: string };

/**
 * Assigns one kind of resource. The state is a value: an allocation is in force only if the caller keeps the new state.
 */
export interface HintProvider<State> {
  /** Hints for one container, or for the whole pod if `container` is undefined. */
  hints(state: State, pod: KubeObject, container: Container | undefined): ProviderHints;
  allocate(state: State, pod: KubeObject, container: Container, hint: Hint | undefined): Allocated<State>;
}

export type TopologyAdmission<State> =
  | {
      readonly kind: 'admitted';
      readonly state: State;
      /** By container; empty under the policy `none`. */
      readonly hints: ReadonlyMap<string, Hint>;
    }
  | {
      readonly kind: 'refused';
      readonly reason: string;
      readonly message: string;
      /** Hint of the container that could not be placed, or of the whole pod. */
      readonly hint?: Hint;
    };

const REFUSED = {
  kind: 'refused',
  reason: 'TopologyAffinityError',
  message: 'Resources cannot be allocated with Topology locality',
} as const;

/** `settings` is undefined for the policy `none`: resources are then allocated without hints. */
export function admitTopology<State>(
  settings: TopologySettings | undefined,
  providers: readonly HintProvider<State>[],
  initial: State,
  pod: KubeObject,
): TopologyAdmission<State> {
  let state = initial;
  const hints = new Map<string, Hint>();
  const decide = (container: Container | undefined) =>
    settings === undefined
      ? undefined
      : decideTopology(
          settings,
          providers.map((provider) => provider.hints(state, pod, container)),
        );
  const wholePod = settings?.scope === 'pod' ? decide(undefined) : undefined;
  if (wholePod?.admit === false) return { ...REFUSED, hint: wholePod.hint };
  for (const container of containersOf(pod)) {
    const decision = wholePod ?? decide(container);
    if (decision?.admit === false) return { ...REFUSED, hint: decision.hint };
    if (decision !== undefined) hints.set(container.name, decision.hint);
    for (const provider of providers) {
      const allocated = provider.allocate(state, pod, container, decision?.hint);
      if (allocated.kind === 'failed') {
        return allocated.reason === undefined
          ? {
              kind: 'refused',
              reason: 'UnexpectedAdmissionError',
              message: `Allocate failed due to ${allocated.message}, which is unexpected`,
            }
          : { kind: 'refused', reason: allocated.reason, message: allocated.message };
      }
      state = allocated.state;
    }
  }
  return { kind: 'admitted', state, hints };
}

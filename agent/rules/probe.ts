/**
 * Results of probes. Source: upstream pkg/kubelet/prober/worker.go (doProbe) and prober_manager.go (UpdatePodStatus).
 */
import { isRestartable } from '../../shared/kinds/pods/container-restarts.ts';
import type { Container, KubePod, Probe } from '../../shared/kinds/types.ts';
import { expand, type Variables } from './env.ts';

export type ProbeKind = 'startup' | 'readiness' | 'liveness';

export const PROBE_KINDS: readonly ProbeKind[] = ['startup', 'readiness', 'liveness'];

export type ProbeResult = 'success' | 'failure' | 'unknown';

/** The outcome of one probe. */
export type ProbeOutcome =
  | { readonly kind: 'success' }
  /** A success that is reported. */
  | { readonly kind: 'warning'; readonly message: string }
  | { readonly kind: 'failure'; readonly message: string }
  /** The probe itself failed. It counts as neither. */
  | { readonly kind: 'error'; readonly message: string };

/** What one probe knows about one run of its container. */
export interface ProbeState {
  readonly containerId: string;
  /** The result that counts: that of the last outcomes that reached their threshold. */
  readonly result: ProbeResult;
  readonly lastOutcome: 'success' | 'failure' | undefined;
  /** How often the last outcome was repeated. */
  readonly repeated: number;
  /** The container is being restarted: not probed until the next run. */
  readonly onHold: boolean;
}

const NAMES: Readonly<Record<ProbeKind, string>> = {
  startup: 'Startup',
  readiness: 'Readiness',
  liveness: 'Liveness',
};
const INITIAL: Readonly<Record<ProbeKind, ProbeResult>> = {
  startup: 'unknown',
  readiness: 'failure',
  liveness: 'success',
};
const PERIOD_SECONDS = 10;
const FAILURES = 3;
const GRACE_SECONDS = 30;

export function probeOf(container: Container, kind: ProbeKind): Probe | undefined {
  if (kind === 'startup') return container.startupProbe;
  return kind === 'readiness' ? container.readinessProbe : container.livenessProbe;
}

export const periodMs = ({ periodSeconds = PERIOD_SECONDS }: Probe): number => Math.max(1, periodSeconds) * 1_000;
export const timeoutMs = ({ timeoutSeconds = 1 }: Probe): number => Math.max(1, timeoutSeconds) * 1_000;

/** @param wasReady whether this run was ready already, before the agent started */
export const initialState = (kind: ProbeKind, containerId: string, wasReady = false): ProbeState => ({
  containerId,
  result: wasReady ? 'success' : INITIAL[kind],
  lastOutcome: undefined,
  repeated: 0,
  onHold: false,
});

/** The state after an outcome. The container is restarted when it is then on hold. */
export function afterOutcome(state: ProbeState, kind: ProbeKind, probe: Probe, outcome: ProbeOutcome): ProbeState {
  if (outcome.kind === 'error') return state;
  const counted = outcome.kind === 'failure' ? 'failure' : 'success';
  const repeated = state.lastOutcome === counted ? state.repeated + 1 : 1;
  const next = { ...state, lastOutcome: counted, repeated } as const;
  const threshold = counted === 'failure' ? (probe.failureThreshold ?? FAILURES) : (probe.successThreshold ?? 1);
  if (repeated < threshold) return next;
  if (counted === 'success' || kind === 'readiness') return { ...next, result: counted };
  return { ...next, result: counted, onHold: true, repeated: 0 };
}

/** The message of the event `Unhealthy` or `ProbeWarning`; undefined for a success. */
export function outcomeMessage(kind: ProbeKind, outcome: ProbeOutcome): string | undefined {
  switch (outcome.kind) {
    case 'success':
      return undefined;
    case 'warning':
      return `${NAMES[kind]} probe warning: ${outcome.message}`;
    case 'failure':
      return `${NAMES[kind]} probe failed: ${outcome.message}`;
    case 'error':
      return `${NAMES[kind]} probe errored and resulted in unknown state: ${outcome.message}`;
  }
}

/** Seconds between SIGTERM and SIGKILL of a container that failed this probe. */
export const probeGraceSeconds = ({ terminationGracePeriodSeconds }: Probe, { spec }: KubePod): number =>
  terminationGracePeriodSeconds ?? spec?.terminationGracePeriodSeconds ?? GRACE_SECONDS;

export function restartMessage(kind: ProbeKind, pod: KubePod, container: Container): string {
  const willRestart = isRestartable(container, pod.spec?.restartPolicy);
  return `Container ${container.name} failed ${kind} probe${willRestart ? ', will be restarted' : ''}`;
}

/** A command with the variables that have a value in the spec. */
export function probeCommand(words: readonly string[], { env = [] }: Container): readonly string[] {
  const values: Variables = Object.fromEntries(
    env.flatMap(({ name, value, valueFrom }) => (valueFrom === undefined ? [[name ?? '', value ?? '']] : [])),
  );
  return words.map((word) => expand(word, values));
}

/** A probe that this node cannot make. */
export function unsupportedProbe(container: Container): string | undefined {
  const kind = PROBE_KINDS.find((each) => probeOf(container, each)?.grpc !== undefined);
  return kind === undefined ? undefined : `${kind}Probe.grpc is not supported on this node`;
}

/** Probes the containers of the pods of this node. One worker per container and kind of probe. */
import type { Container, KubePod, Probe } from '../../../shared/kinds/types.ts';
import type { PodRuntime, RunningContainer, RunningPod } from '../../ports/pod-runtime.ts';
import type { ProbeClient } from '../../ports/probe-client.ts';
import type { AgentTime } from '../../ports/time.ts';
import type { NodeEvent } from '../../rules/node-event.ts';
import {
  afterOutcome,
  initialState,
  outcomeMessage,
  PROBE_KINDS,
  type ProbeKind,
  type ProbeOutcome,
  type ProbeState,
  periodMs,
  probeCommand,
  probeGraceSeconds,
  probeOf,
  restartMessage,
  timeoutMs,
} from '../../rules/probe.ts';
import { httpTarget, portNumber } from '../../rules/probe-handler.ts';
import { describeError } from '../describe-error.ts';
import { containersOf } from './runtime-view.ts';

/** Attempts of one probe that fails by itself. */
const ATTEMPTS_MAX = 3;

export interface PodProbesDependencies {
  readonly runtime: PodRuntime;
  readonly probeClient: ProbeClient;
  readonly time: AgentTime;
  readonly hostIp: () => string | undefined;
  readonly recordEvent: (pod: KubePod, event: NodeEvent) => void;
}

export interface Readiness {
  readonly started: boolean;
  readonly ready: boolean;
}

export class PodProbes {
  readonly #dependencies: PodProbesDependencies;
  readonly #workers = new Map<string, Map<string, ProbeWorker>>();
  #onResult: (podUid: string) => void = () => {};

  constructor(dependencies: PodProbesDependencies) {
    this.#dependencies = dependencies;
    dependencies.runtime.useStarted?.((podUid, container) => {
      const worker = this.#workers.get(podUid)?.get(keyOf(container, 'startup'));
      return worker?.result() === 'success';
    });
  }

  /** Called when a result changed that the status of the pod shows. */
  onResult(listener: (podUid: string) => void): void {
    this.#onResult = listener;
  }

  /** Starts the probes of a running pod, and shows them the newest state of its containers. */
  update(pod: KubePod, running: RunningPod | undefined): void {
    // Without `execute` the probes are those of the runtime.
    if (this.#dependencies.runtime.execute === undefined) return;
    const uid = pod.metadata.uid ?? '';
    const containers = running === undefined ? [] : containersOf(running);
    for (const spec of probedContainers(pod)) {
      const container = containers.find(({ name }) => name === spec.name);
      for (const kind of PROBE_KINDS) {
        const probe = probeOf(spec, kind);
        if (probe !== undefined) this.#workerFor(uid, pod, spec, kind, probe).see(container, running?.ip);
      }
    }
  }

  readinessOf(podUid: string, { name, state }: RunningContainer): Readiness {
    const workers = this.#workers.get(podUid);
    const isSuccess = (kind: ProbeKind): boolean => {
      const worker = workers?.get(keyOf(name, kind));
      return worker === undefined || worker.result() === 'success';
    };
    const started = state.kind === 'running' && isSuccess('startup');
    return { started, ready: started && isSuccess('readiness') };
  }

  /** Ends the probes of a pod. */
  remove(podUid: string): void {
    for (const worker of this.#workers.get(podUid)?.values() ?? []) worker.stop();
    this.#workers.delete(podUid);
  }

  /** Ends all probes. */
  stop(): void {
    for (const podUid of [...this.#workers.keys()]) this.remove(podUid);
  }

  #workerFor(uid: string, pod: KubePod, container: Container, kind: ProbeKind, probe: Probe): ProbeWorker {
    const workers = this.#workers.get(uid) ?? new Map<string, ProbeWorker>();
    this.#workers.set(uid, workers);
    const key = keyOf(container.name ?? '', kind);
    const known = workers.get(key);
    if (known !== undefined) return known;
    const worker = new ProbeWorker({ pod, container, kind, probe }, this.#dependencies, {
      isStarted: () =>
        kind === 'startup' ||
        (workers.get(keyOf(container.name ?? '', 'startup'))?.result() ?? 'success') === 'success',
      onResult: () => {
        if (kind === 'startup') for (const other of workers.values()) other.wake();
        this.#onResult(uid);
      },
    });
    workers.set(key, worker);
    void worker.run();
    return worker;
  }
}

const keyOf = (container: string, kind: ProbeKind): string => `${container}/${kind}`;

/** Init containers that terminate have no probes. */
const probedContainers = ({ spec }: KubePod): readonly Container[] => [
  ...(spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always'),
  ...(spec?.containers ?? []),
];

interface Subject {
  readonly pod: KubePod;
  readonly container: Container;
  readonly kind: ProbeKind;
  readonly probe: Probe;
}

interface WorkerCallbacks {
  /** Whether the startup probe of the container, if any, has succeeded. */
  readonly isStarted: () => boolean;
  readonly onResult: () => void;
}

class ProbeWorker {
  readonly #subject: Subject;
  readonly #dependencies: PodProbesDependencies;
  readonly #callbacks: WorkerCallbacks;
  readonly #stopped = new AbortController();
  #wake = new AbortController();
  #container: RunningContainer | undefined;
  #podIp: string | undefined;
  #state: ProbeState | undefined;
  /** When this run has had its delay. Monotonic milliseconds. */
  #delayedUntilMs = 0;

  constructor(subject: Subject, dependencies: PodProbesDependencies, callbacks: WorkerCallbacks) {
    this.#subject = subject;
    this.#dependencies = dependencies;
    this.#callbacks = callbacks;
  }

  result(): ProbeState['result'] {
    return this.#state?.result ?? 'unknown';
  }

  /** @param podIp address of the pod, if it is not that of the machine */
  see(container: RunningContainer | undefined, podIp: string | undefined): void {
    this.#container = container;
    this.#podIp = podIp;
    const { containerId } = container ?? {};
    if (containerId === undefined || this.#state?.containerId === containerId) return;
    const { kind, pod } = this.#subject;
    const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
    const before = [...initContainerStatuses, ...containerStatuses].find((each) => each.containerID === containerId);
    // A pod does not become unready because the agent was restarted.
    const was = kind === 'startup' ? before?.started : before?.ready;
    this.#state = initialState(kind, containerId, this.#state === undefined && was === true);
    this.#delayedUntilMs = this.#dependencies.time.monotonicMs() + this.#delayLeftMs();
    this.wake();
  }

  wake(): void {
    this.#wake.abort();
  }

  stop(): void {
    this.#stopped.abort();
  }

  async run(): Promise<void> {
    const { time } = this.#dependencies;
    while (!this.#stopped.signal.aborted) {
      this.#wake = new AbortController();
      const waitMs = this.#delayMs();
      if (waitMs === 0) await this.#probeOnce();
      const signals = [this.#stopped.signal, ...(waitMs === 0 ? [] : [this.#wake.signal])];
      await time.sleep(waitMs === 0 ? periodMs(this.#subject.probe) : waitMs, AbortSignal.any(signals));
    }
  }

  /** Until the container may be probed. Milliseconds. */
  #delayMs(): number {
    const { probe, kind } = this.#subject;
    const state = this.#state;
    const container = this.#container?.state;
    const isDue = state !== undefined && !state.onHold && container?.kind === 'running' && this.#callbacks.isStarted();
    if (!isDue || (kind === 'startup' && state.result === 'success')) return periodMs(probe);
    return Math.max(0, this.#delayedUntilMs - this.#dependencies.time.monotonicMs());
  }

  /** By the wall clock, which the run before this agent has. Read once: a clock that is set later ends no delay. */
  #delayLeftMs(): number {
    const { state } = this.#container ?? {};
    const delayMs = (this.#subject.probe.initialDelaySeconds ?? 0) * 1_000;
    const ranMs = state?.kind === 'running' ? this.#dependencies.time.nowMs() - state.startedAtMs : 0;
    // A clock that was set back must not delay the probe by more than its delay.
    return Math.min(delayMs, Math.max(0, delayMs - ranMs));
  }

  async #probeOnce(): Promise<void> {
    const { pod, container, kind, probe } = this.#subject;
    const { recordEvent, runtime } = this.#dependencies;
    const before = this.#state;
    const outcome = await this.#probeWithRetries();
    // Meanwhile another run may have started, or the pod may be stopping.
    if (before === undefined || this.#state !== before || this.#stopped.signal.aborted) return;
    if (this.#container?.state.kind !== 'running') return;
    const message = outcomeMessage(kind, outcome);
    const reason = outcome.kind === 'warning' ? 'ProbeWarning' : 'Unhealthy';
    if (message !== undefined) recordEvent(pod, { type: 'Warning', reason, message });
    this.#state = afterOutcome(before, kind, probe, outcome);
    if (this.#state.result !== before.result) this.#callbacks.onResult();
    if (!this.#state.onHold) return;
    const graceSeconds = probeGraceSeconds(probe, pod);
    const { uid = '' } = pod.metadata;
    // The next run has another container id, and its own state.
    runtime
      .restartContainer?.(uid, container.name ?? '', graceSeconds, restartMessage(kind, pod, container))
      .catch(() => undefined);
  }

  async #probeWithRetries(): Promise<ProbeOutcome> {
    let outcome = await this.#guardedProbe();
    for (let attempt = 1; attempt < ATTEMPTS_MAX && outcome.kind === 'error'; attempt += 1)
      outcome = await this.#guardedProbe();
    return outcome;
  }

  /** Never rejects: a worker has no caller, so its error would end the agent. */
  #guardedProbe(): Promise<ProbeOutcome> {
    return this.#probe().catch((cause: unknown) => ({ kind: 'error', message: describeError(cause) }));
  }

  async #probe(): Promise<ProbeOutcome> {
    const { pod, container, probe } = this.#subject;
    const { runtime, probeClient, hostIp } = this.#dependencies;
    const { exec, httpGet, tcpSocket } = probe;
    const limitMs = timeoutMs(probe);
    const podIp = this.#podIp || hostIp() || '127.0.0.1';
    if (exec !== undefined) {
      const words = probeCommand(exec.command ?? [], container);
      const result = await runtime.execute?.(pod.metadata.uid ?? '', container.name ?? '', words, limitMs);
      if (result === undefined || result.kind === 'failed') return { kind: 'error', message: result?.message ?? '' };
      if (result.kind === 'timedOut') {
        return { kind: 'failure', message: `command ${JSON.stringify(words.join(' '))} timed out` };
      }
      return result.exitCode === 0 ? { kind: 'success' } : { kind: 'failure', message: result.output };
    }
    if (httpGet !== undefined) {
      const found = httpTarget(httpGet, container, podIp);
      if (found.kind === 'failed') return { kind: 'error', message: found.message };
      const result = await probeClient.httpGet(found.target, limitMs);
      if (result.kind === 'failed') return { kind: 'failure', message: result.message };
      if (result.kind === 'redirected') {
        return { kind: 'warning', message: `Probe terminated redirects, Response body: ${result.body}` };
      }
      if (result.status >= 200 && result.status < 400) return { kind: 'success' };
      return { kind: 'failure', message: `HTTP probe failed with statuscode: ${result.status}` };
    }
    const port = portNumber(tcpSocket?.port, container);
    if (port.kind === 'failed') return { kind: 'error', message: port.message };
    const why = await probeClient.tcpConnect(tcpSocket?.host || podIp, port.port, limitMs);
    return why === undefined ? { kind: 'success' } : { kind: 'failure', message: why };
  }
}

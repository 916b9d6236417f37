/**
 * What really runs on one machine, and the agent that starts and stops it by the rule of offline stop. Containers
 * survive the agent, and nothing survives a loss of power. A pod that is to stop runs until the last moment of its
 * grace period.
 *
 * The agent beats and lists side by side, so a list may have been requested before a heartbeat and answered after it.
 */
import { listPods } from '../agent/app/pod-list.ts';
import { killRequest } from '../agent/rules/kill-request.ts';
import {
  type ClockReading,
  elapsedMs,
  graceSecondsLeft,
  mayStart,
  offlineRunMs,
  offlineStoppedStatus,
  stopMessage,
} from '../agent/rules/offline-stop.ts';
import { finalPodDeletion, podStatusReport } from '../agent/rules/pod-requests.ts';
import { hasEnded } from '../agent/rules/pod-status.ts';
import { needsStartedStatus, resizedStatus, startedStatus } from '../agent/rules/started-pod.ts';
import { isRenewal } from '../server/routes.ts';
import type { PermitAnswer } from '../shared/agents/site-permits.ts';
import { siteHubOf } from '../shared/kinds/pods/site-permit.ts';
import type { KubeObject, KubePod } from '../shared/kinds/types.ts';
import { type ClusterView, podKey } from './cluster-view.ts';
import type { EndpointAnswer, EndpointRequest } from './endpoint.ts';
import type { SendRequest } from './heartbeat-doors.ts';
import type { AskForPermits } from './hub-world.ts';
import { apiOver, NO_ANSWER } from './kube-requests.ts';
import { MachineLink } from './machine-link.ts';
import { MachineTime } from './machine-time.ts';
import { type OfflineRules, offlineRules } from './offline-rules.ts';
import { hashOf, seededFraction } from './seeded-random.ts';
import { never, type VirtualTime } from './virtual-time.ts';

/** How often an agent looks for pods that have to stop. Milliseconds. */
const LOOK_EVERY_MS = 5_000;
/** How often it lists its pods, if they changed. Milliseconds. */
const LIST_EVERY_MS = 4_000;
/** How often it asks the hub of its site for permits. Milliseconds. */
const ASK_EVERY_MS = 10_000;

export interface Stop {
  readonly why: 'deleted' | 'offline' | 'power';
  /** When the last heartbeat that was answered was sent. True time; -Infinity: none since the boot. */
  readonly answeredAtMs: number;
}

/** Receives what really happens. */
export interface PodObserver {
  onStart(machine: string, pod: KubePod): void;
  /** Its grace period begins; without power it ends at once. */
  onStopping(machine: string, pod: KubePod, stop: Stop): void;
  onStopped(machine: string, pod: KubePod): void;
}

export interface PodHostOptions {
  readonly seed: number;
  readonly time: VirtualTime;
  readonly view: ClusterView;
  readonly observer: PodObserver;
  readonly log: (subject: string, text: string) => void;
  /** With bugs to plant. */
  readonly rules?: Partial<OfflineRules> | undefined;
  /** Asks the hub of the site for permits. Undefined: it does not answer. Absent: there is none. */
  readonly askHub?: AskForPermits;
}

interface RunningPod {
  readonly pod: KubePod;
  /** Uptime at which its grace period is over; undefined: it shall run. */
  endsAtMs: number | undefined;
}

/** One process of the agent. */
interface AgentProcess {
  /** Before it sent the last heartbeat that the cluster itself answered, in this boot. */
  answered: ClockReading | undefined;
  /** Pods that it stopped for good. */
  readonly over: Set<string>;
  isDown: boolean;
  /** By uid: before the last permit was asked for, and when that was in true time. */
  readonly permits: Map<string, { readonly at: ClockReading; readonly atMs: number }>;
  /** Of the process before: by them pods go on, and none starts. */
  readonly former: ReadonlyMap<string, { readonly at: ClockReading }>;
  /** Copies that the cluster may not know yet. */
  copies: readonly KubePod[];
  /** Copies that were withdrawn, and pods that were released: they never start here. */
  readonly withdrawn: Set<string>;
  readonly final: Set<string>;
  /** Permits are asked for one after the other. */
  asking: Promise<unknown>;
}

const uidOf = ({ metadata }: KubeObject): string => metadata.uid ?? '';

export class PodHost {
  readonly name: string;
  readonly link: MachineLink;
  /** To the hub of the site. */
  readonly hubLink: MachineLink;
  readonly clock: MachineTime;
  readonly #options: PodHostOptions;
  readonly #rules: OfflineRules;
  #running = new Map<string, RunningPod>();
  #process: AgentProcess | undefined;
  /** The last answered heartbeat of this boot, in a file that the next process reads. */
  #file: ClockReading | undefined;
  /** The permits of this boot, in a file that the next process reads. */
  #permitFile = new Map<string, { readonly at: ClockReading; readonly atMs: number }>();
  #copyFile: readonly KubePod[] = [];
  /** For the laws. */
  #answeredAtMs = Number.NEGATIVE_INFINITY;
  /** Pods of the last list, by uid: on the disk. */
  #remembered = new Map<string, KubePod>();

  constructor(name: string, options: PodHostOptions) {
    this.name = name;
    this.#options = options;
    this.link = new MachineLink(options.time, seededFraction(hashOf(`${options.seed} link of ${name}`)));
    this.hubLink = new MachineLink(options.time, seededFraction(hashOf(`${options.seed} hub link of ${name}`)));
    this.clock = new MachineTime(options.seed, name);
    this.#rules = { ...offlineRules, ...options.rules };
  }

  get isOn(): boolean {
    return this.#process !== undefined;
  }

  runs(which: (pod: KubePod) => boolean): boolean {
    return [...this.#running.values()].some(({ pod }) => which(pod));
  }

  /** The machine starts. It returns how the machine sends through its link from now on. */
  boot(send: SendRequest, isGone: () => boolean): SendRequest {
    const { time } = this.#options;
    this.clock.boot(time.nowMs());
    this.#file = undefined;
    this.#permitFile = new Map();
    this.#copyFile = [];
    this.#answeredAtMs = Number.NEGATIVE_INFINITY;
    this.#startProcess();
    if (this.#rules.startsRemembered) {
      this.#process!.answered = this.#now();
      for (const pod of this.#remembered.values()) if (!hasEnded(pod)) this.#start(pod);
    }
    const linked: SendRequest = (request) => this.link.pass(() => send(request), isGone);
    const direct: SendRequest = (request) => this.#asProcess(() => linked(request), isGone);
    void this.#repeat(isGone, LOOK_EVERY_MS, async () => this.#look());
    void this.#repeat(isGone, LIST_EVERY_MS, () => this.#list(direct, isGone));
    if (this.#options.askHub !== undefined) {
      void this.#repeat(isGone, ASK_EVERY_MS, async () => {
        const process = this.#process;
        if (process?.isDown === false) await this.#ask(process, [], isGone);
      });
    }
    return linked;
  }

  /** Sends as the agent does, which counts its answered heartbeats. */
  counting(send: SendRequest, isGone: () => boolean): SendRequest {
    return (request) => this.#asProcess((process) => this.#sendCounted(process, request, send), isGone);
  }

  powerOff(): void {
    this.#process = undefined;
    for (const { pod } of this.#running.values()) {
      this.#options.observer.onStopping(this.name, pod, { why: 'power', answeredAtMs: this.#answeredAtMs });
      this.#options.observer.onStopped(this.name, pod);
    }
    this.#running = new Map();
  }

  /** The process of the agent ends, and another one starts. Containers run on. */
  restartAgent(downMs: number): void {
    const process = this.#process;
    if (process === undefined) return;
    process.isDown = true;
    this.#options.log(this.name, `the agent restarts, in ${Math.round(downMs)} ms`);
    this.#options.time.after(downMs, () => {
      if (this.#process === process) this.#startProcess();
    });
  }

  #startProcess(): void {
    this.#process = {
      answered: this.#file,
      over: new Set(),
      isDown: false,
      permits: new Map(),
      former: new Map(this.#permitFile),
      copies: this.#copyFile,
      withdrawn: new Set(),
      final: new Set(),
      asking: Promise.resolve(),
    };
  }

  #now(): ClockReading {
    return this.clock.at(this.#options.time.nowMs());
  }

  async #repeat(isGone: () => boolean, everyMs: number, act: () => Promise<void>): Promise<void> {
    while (!isGone()) {
      await act();
      await this.#options.time.sleep(everyMs);
    }
  }

  /** A request of an agent that ends in the meantime has no answer. */
  async #asProcess(
    send: (process: AgentProcess) => Promise<EndpointAnswer>,
    isGone: () => boolean,
  ): Promise<EndpointAnswer> {
    const process = this.#process;
    if (process === undefined || isGone()) return never();
    if (process.isDown) await this.#options.time.sleep(LOOK_EVERY_MS);
    const answer = process.isDown ? NO_ANSWER : await send(process);
    if (isGone()) return never();
    return this.#process === process ? answer : NO_ANSWER;
  }

  async #sendCounted(process: AgentProcess, request: EndpointRequest, send: SendRequest): Promise<EndpointAnswer> {
    const [sent, sentAtMs] = [this.#now(), this.#options.time.nowMs()];
    const answer = await send(request);
    if (this.#process !== process || process.isDown || !isRenewal(request) || answer.status !== 200) return answer;
    const isRelayed = answer.isRelayed === true;
    const counted = this.#rules.counted({ sent, received: this.#now(), isRelayed });
    // What was due before stops, although an answer arrives now.
    this.#look();
    if (!isRelayed) this.#answeredAtMs = sentAtMs;
    if (counted === undefined) return answer;
    process.answered = counted;
    this.#file = counted;
    return answer;
  }

  /** Stops what has to stop. A grace period passes whether or not the agent runs. */
  #look(): void {
    const now = this.#now();
    for (const [uid, running] of this.#running) {
      if (running.endsAtMs !== undefined && running.endsAtMs <= now.uptimeMs) {
        this.#running.delete(uid);
        this.#options.log(this.name, `${podKey(running.pod)} has stopped`);
        this.#options.observer.onStopped(this.name, running.pod);
      }
    }
    const process = this.#process;
    if (process === undefined || process.isDown) return;
    for (const [uid, running] of this.#running) {
      const { pod, endsAtMs } = running;
      const runMs = offlineRunMs(pod);
      const silentMs = this.#silentMs(pod, process, now);
      if (endsAtMs !== undefined || runMs === undefined || silentMs < runMs) continue;
      process.over.add(uid);
      this.#stop(running, 'offline', graceSecondsLeft(pod, silentMs));
    }
  }

  #start(pod: KubePod): void {
    this.#running.set(uidOf(pod), { pod, endsAtMs: undefined });
    this.#options.log(this.name, `runs ${podKey(pod)}`);
    this.#options.observer.onStart(this.name, pod);
  }

  #stop(running: RunningPod, why: Stop['why'], graceSeconds: number): void {
    if (running.endsAtMs !== undefined) return;
    this.#options.log(this.name, `stops ${podKey(running.pod)}: ${why}`);
    const permit =
      siteHubOf(running.pod) === undefined ? undefined : (this.#permitFile.get(uidOf(running.pod))?.atMs ?? 0);
    const answeredAtMs = permit ?? this.#answeredAtMs;
    this.#options.observer.onStopping(this.name, running.pod, { why, answeredAtMs });
    running.endsAtMs = this.#now().uptimeMs + 1_000 * graceSeconds;
  }

  /** Whether a list would differ from the last one: one that does not changes nothing here. */
  #hasNews(): boolean {
    const seen = [...this.#options.view.podsOf(this.name)] as KubePod[];
    return (
      seen.length !== this.#remembered.size ||
      this.#running.size > this.#remembered.size ||
      seen.some((pod) => {
        const known = this.#remembered.get(uidOf(pod));
        const isSettled =
          known?.metadata.resourceVersion === pod.metadata.resourceVersion &&
          pod.metadata.deletionTimestamp === undefined &&
          (this.#running.has(uidOf(pod)) || hasEnded(pod));
        return !isSettled;
      })
    );
  }

  async #list(send: SendRequest, isGone: () => boolean): Promise<void> {
    const process = this.#process;
    if (process === undefined || process.isDown || !this.#hasNews()) return;
    const before = process.answered;
    const list = await listPods(apiOver(send, this.name), this.name);
    if (isGone() || this.#process !== process || process.isDown || list.kind === 'failed') return;
    const { pods } = list;
    const listedAfter = this.#rules.listedAfter(before, process.answered);
    this.#remembered = new Map(pods.map((pod) => [uidOf(pod), pod]));
    for (const [uid, running] of this.#running) {
      const listed = this.#remembered.get(uid);
      if (listed === undefined && process.copies.some((copy) => uidOf(copy) === uid)) continue;
      if (listed === undefined || listed.metadata.deletionTimestamp !== undefined || hasEnded(listed))
        this.#stop(running, 'deleted', killRequest(running.pod, undefined).graceSeconds);
    }
    for (const pod of pods) {
      if (!this.#running.has(uidOf(pod)) && this.#mayStart(pod, process, listedAfter)) this.#start(pod);
    }
    for (const pod of pods) {
      if (isGone() || this.#process !== process) return;
      await this.#report(pod, process, send, isGone);
    }
  }

  #mayStart(pod: KubePod, process: AgentProcess, listedAfter: ClockReading | undefined): boolean {
    if (pod.metadata.deletionTimestamp !== undefined || hasEnded(pod) || process.over.has(uidOf(pod))) return false;
    if (siteHubOf(pod) === undefined) return mayStart(pod, listedAfter, this.#now());
    const uid = uidOf(pod);
    const isPermittedByList = this.#rules.startsByList && listedAfter !== undefined && !process.permits.has(uid);
    if (isPermittedByList) process.permits.set(uid, { at: listedAfter, atMs: this.#options.time.nowMs() });
    return !process.final.has(uid) && mayStart(pod, process.permits.get(uid)?.at, this.#now());
  }

  /** Time without a heartbeat, or a permit, for a pod that the hub of its site decides about. */
  #silentMs(pod: KubePod, process: AgentProcess, now: ClockReading): number {
    if (siteHubOf(pod) === undefined) return silentMsOf(process, now);
    const permit = (process.permits.get(uidOf(pod)) ?? process.former.get(uidOf(pod)))?.at;
    const silentMs = permit === undefined ? Number.POSITIVE_INFINITY : elapsedMs(permit, now);
    return this.#rules.countsBeats ? Math.min(silentMs, silentMsOf(process, now)) : silentMs;
  }

  /** One request at a time: no older answer follows a newer one. */
  #ask(process: AgentProcess, released: readonly string[], isGone: () => boolean): Promise<PermitAnswer | undefined> {
    const asked = process.asking.then(() => this.#askNow(process, released, isGone));
    process.asking = asked.catch(() => undefined);
    return asked;
  }

  async #askNow(process: AgentProcess, released: readonly string[], isGone: () => boolean) {
    const [at, atMs] = [this.#now(), this.#options.time.nowMs()];
    const stopped = [...process.withdrawn].filter((uid) => !this.#running.has(uid));
    for (const uid of stopped) process.final.add(uid);
    const sent = async (): Promise<EndpointAnswer> => {
      const body = await this.#options.askHub!(this.name, { released, stopped });
      return body === undefined ? NO_ANSWER : { status: 200, body };
    };
    const { status, body } = await this.hubLink.pass(sent, isGone);
    if (status !== 200 || this.#process !== process || process.isDown) return undefined;
    const answer = body as PermitAnswer;
    // What was due before stops, although a permit arrives now.
    this.#look();
    for (const uid of answer.permitted) {
      process.permits.set(uid, { at, atMs });
      this.#permitFile.set(uid, { at, atMs });
    }
    for (const uid of answer.withdrawn) process.withdrawn.add(uid);
    const unknown = new Set(answer.copies.map(uidOf));
    const kept = process.copies.filter((copy) => !unknown.has(uidOf(copy)) && answer.permitted.includes(uidOf(copy)));
    process.copies = [...answer.copies, ...kept];
    this.#copyFile = process.copies;
    for (const [uid, running] of this.#running) {
      if (process.withdrawn.has(uid)) this.#stop(running, 'deleted', killRequest(running.pod, undefined).graceSeconds);
    }
    for (const pod of [...this.#remembered.values(), ...process.copies]) {
      const uid = uidOf(pod);
      if (siteHubOf(pod) === undefined || this.#running.has(uid) || !answer.permitted.includes(uid)) continue;
      if (this.#mayStart(pod, process, undefined)) this.#start(pod);
    }
    return answer;
  }

  /** Whether the end of the pod may be reported to the cluster. */
  async #release(pod: KubePod, process: AgentProcess, isGone: () => boolean): Promise<boolean> {
    const uid = uidOf(pod);
    if (siteHubOf(pod) === undefined || this.#rules.skipsRelease) return true;
    if (this.#options.askHub === undefined || this.#running.has(uid)) return false;
    process.final.add(uid);
    const answer = await this.#ask(process, [uid], isGone);
    return answer?.released.includes(uid) === true;
  }

  #resizedStatus(pod: KubePod, nowMs: number) {
    const node = this.#options.view.nodes.get(this.name) ?? { metadata: {} };
    return resizedStatus(pod, () => this.#remembered.values(), node, nowMs);
  }

  async #report(pod: KubePod, process: AgentProcess, send: SendRequest, isGone: () => boolean): Promise<void> {
    const uid = uidOf(pod);
    const running = this.#running.get(uid);
    if (running !== undefined) {
      if (running.endsAtMs !== undefined) return;
      const { wallMs } = this.#now();
      const status = needsStartedStatus(pod) ? startedStatus(pod, wallMs, undefined) : this.#resizedStatus(pod, wallMs);
      if (status !== undefined) await send({ who: this.name, ...podStatusReport(pod, status) });
    } else if (pod.metadata.deletionTimestamp !== undefined) {
      if (!(await this.#release(pod, process, isGone)) || this.#process !== process) return;
      await send({ who: this.name, ...finalPodDeletion(pod) });
    } else if (process.over.has(uid) && !hasEnded(pod)) {
      if (!(await this.#release(pod, process, isGone)) || this.#process !== process) return;
      const now = this.#now();
      const silentMs = this.#silentMs(pod, process, now);
      const status = offlineStoppedStatus(pod.status ?? {}, stopMessage(pod, silentMs), now.wallMs);
      await send({ who: this.name, ...podStatusReport(pod, status) });
    }
  }
}

/** Time without an answered heartbeat. Infinity: none is known. Milliseconds. */
const silentMsOf = ({ answered }: AgentProcess, now: ClockReading): number =>
  answered === undefined ? Number.POSITIVE_INFINITY : elapsedMs(answered, now);

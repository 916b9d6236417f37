/**
 * Permits of the hub of the site: the pods that this machine may run although the cluster does not answer, and no
 * others of those that the hub decides about (decision 0068).
 *
 * A permit counts from before it was asked for. PermitAnswer names its hub. A permit of another hub than that of the
 * pod counts for nothing. A hub without rescheduling is asked again after an hour.
 *
 * The machine says that it has released a pod, or stopped a copy, only while it does not run it, and never runs it
 * afterwards: `finalUids`. An answer from before may still permit it.
 *
 * The permits are in a file for an agent that starts again within the same boot. By them pods that run go on, and no
 * pod starts: the agent before may have released one that does not run.
 */
import { type PermitAnswer, type PermitRequest, SITE_PERMITS } from '../../shared/agents/site-permits.ts';
import { siteHubOf } from '../../shared/kinds/pods/site-permit.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import { listOf, recordOf, recordsOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import type { Log } from '../../shared/observability/log.ts';
import type { KubeApi } from '../ports/kube-api.ts';
import type { PermitFile } from '../ports/permit-file.ts';
import type { AgentTime } from '../ports/time.ts';
import { answeredWith, describeAnswer, isTransient } from '../rules/kube-answer.ts';
import { type ClockReading, clockReading, type KeptPermits } from '../rules/offline-stop.ts';
import { describeError } from './describe-error.ts';
import { NewestInFile } from './newest-in-file.ts';

const ASK_EVERY_MS = 10_000;
/** A hub without permits. Milliseconds. */
const ASK_AGAIN_MS = 3_600_000;
const TIMEOUT_MS = 5_000;

export interface SitePermitsDependencies {
  /** A client of the hub. */
  readonly hub: KubeApi;
  readonly file: PermitFile;
  readonly time: AgentTime;
  readonly log: Log;
}

/** Who runs the pods. */
export interface PermitUser {
  /** Whether the pod runs on this machine, or may. True while that is unknown. */
  readonly mayRun: (uid: string) => boolean;
  /** Permits are about to count: pods without one for too long are stopped nevertheless. */
  readonly permitting: () => void;
  /** Permits, or copies, may have changed. */
  readonly permitted: () => void;
}

export class SitePermits {
  readonly #dependencies: SitePermitsDependencies;
  readonly #permits = new Map<string, ClockReading>();
  /** Of the agent before. */
  #former: ReadonlyMap<string, ClockReading> = new Map();
  readonly #finalUids = new Set<string>();
  /** By the last answer: the hub names them until this machine has said that they do not run. */
  #withdrawn: readonly string[] = [];
  #copies: readonly KubePod[] = [];
  #unknown: ReadonlySet<string> = new Set();
  #hubName: string | undefined;
  #user: PermitUser = { mayRun: () => true, permitting: () => undefined, permitted: () => undefined };
  #waitMs = ASK_EVERY_MS;
  #last: Promise<unknown> = Promise.resolve();
  readonly #kept: NewestInFile<KeptPermits>;

  constructor(dependencies: SitePermitsDependencies) {
    this.#dependencies = dependencies;
    this.#kept = new NewestInFile({ ...dependencies, failure: 'the last permits cannot be kept' });
  }

  connect(user: PermitUser): void {
    this.#user = user;
  }

  /** Reads what the previous agent of this boot kept. Once, before the first request. */
  async read(): Promise<void> {
    const { file, time, log } = this.#dependencies;
    try {
      const kept = await file.read(time.uptimeMs());
      if (kept === undefined) return;
      this.#hubName = kept.hub;
      this.#former = new Map(Object.entries(kept.permits));
      this.#copies = kept.copies;
      this.#unknown = new Set(kept.copies.map(({ metadata }) => metadata.uid ?? ''));
    } catch (cause) {
      log.warn('the last permits cannot be read', { why: describeError(cause) });
    }
  }

  /** The hub that this machine obeys; undefined: none has answered. */
  hubName(): string | undefined {
    return this.#hubName;
  }

  /** The pod may start by it. It is from before it was asked for. Undefined: the pod may not. */
  permitOf(pod: KubePod): ClockReading | undefined {
    return this.#of(pod, this.#permits);
  }

  /** A pod that runs may go on by it. */
  lastPermitOf(pod: KubePod): ClockReading | undefined {
    return this.#of(pod, this.#permits) ?? this.#of(pod, this.#former);
  }

  #of({ metadata }: KubePod, permits: ReadonlyMap<string, ClockReading>): ClockReading | undefined {
    const { uid = '' } = metadata;
    return siteHubOf({ metadata }) === this.#hubName && !this.#finalUids.has(uid) ? permits.get(uid) : undefined;
  }

  /** Pods of this machine that the cluster may not know yet. */
  copies(): readonly KubePod[] {
    return this.#copies.filter(({ metadata: { uid = '' } }) => !this.#finalUids.has(uid));
  }

  /** The cluster does not know it, as far as the hub knows. */
  isCopy(uid: string): boolean {
    return this.#unknown.has(uid);
  }

  /** Asks for the release of a pod that does not run. False: it is refused, or no answer came. Never rejects. */
  async release(uid: string): Promise<boolean> {
    if (this.#user.mayRun(uid)) return false;
    this.#finalUids.add(uid);
    const answer = await this.#ask({ released: [uid] });
    return answer?.released.includes(uid) === true;
  }

  /** Until stopped. */
  async run(stop: AbortSignal): Promise<void> {
    const { time } = this.#dependencies;
    while (!stop.aborted) {
      await this.#ask({});
      await time.sleep(this.#waitMs, stop);
    }
  }

  /** One request at a time: an older answer never follows a newer one. */
  #ask(request: PermitRequest): Promise<PermitAnswer | undefined> {
    const asked = this.#last.then(() => this.#send(request));
    this.#last = asked.catch(() => undefined);
    return asked;
  }

  async #send(request: PermitRequest): Promise<PermitAnswer | undefined> {
    const { hub, time, log } = this.#dependencies;
    const sentAt = clockReading(time);
    const stopped = this.#withdrawn.filter((uid) => !this.#user.mayRun(uid));
    for (const uid of stopped) this.#finalUids.add(uid);
    const { group, version, resource } = SITE_PERMITS;
    const answer = await hub.send({
      method: 'POST',
      path: `/apis/${group}/${version}/${resource}`,
      body: { ...request, stopped },
      timeoutMs: TIMEOUT_MS,
    });
    const permits = answer.kind === 'answered' && answeredWith(answer, 200) ? permitsIn(answer.body) : undefined;
    // Anything that answers with 200 is no hub.
    if (permits === undefined || permits.hub === '') {
      this.#waitMs = isTransient(answer) ? ASK_EVERY_MS : ASK_AGAIN_MS;
      if (!isTransient(answer)) log.debug('the hub of the site has no permits', { why: describeAnswer(answer) });
      return undefined;
    }
    this.#waitMs = ASK_EVERY_MS;
    this.#user.permitting();
    this.#hubName = permits.hub;
    for (const uid of permits.permitted) this.#permits.set(uid, sentAt);
    this.#withdrawn = permits.withdrawn;
    this.#unknown = new Set(permits.copies.map(({ metadata }) => metadata.uid ?? ''));
    // The cluster may know one by now, and a list from before is still under way.
    const kept = this.#copies.filter(
      ({ metadata: { uid = '' } }) => !this.#unknown.has(uid) && permits.permitted.includes(uid),
    );
    this.#copies = [...permits.copies, ...kept];
    for (const uid of [...this.#permits.keys()]) {
      if (!permits.permitted.includes(uid) && !this.#user.mayRun(uid)) this.#permits.delete(uid);
    }
    this.#user.permitted();
    if (this.#permits.size + this.#former.size > 0) this.#keep();
    return permits;
  }

  /** Does not wait. Without the file, the next agent stops the pods unless the hub answers at once. */
  #keep(): void {
    const permits = Object.fromEntries([...this.#former, ...this.#permits]);
    void this.#kept.keep({ hub: this.#hubName ?? '', permits, copies: this.#copies });
  }
}

const hasUid = (pod: object): pod is KubePod => textOf(recordOf(recordOf(pod)['metadata'])['uid']) !== '';

function permitsIn(body: unknown): PermitAnswer {
  const { hub, permitted, copies, withdrawn, released } = recordOf(body);
  return {
    hub: textOf(hub),
    permitted: listOf(permitted).map(textOf),
    copies: recordsOf(copies).filter(hasUid),
    withdrawn: listOf(withdrawn).map(textOf),
    released: listOf(released).map(textOf),
  };
}

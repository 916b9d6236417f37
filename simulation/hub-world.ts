/**
 * Hubs beside the cluster of a simulation, with their troubles. Everything of them has random numbers of its own, and
 * functions of its own that serve them: only what clients write through them concerns the others.
 */
import { composeApi } from '../functions/api/work.ts';
import { UpstreamUnreachable } from '../server/hub/upstream.ts';
import { inProcess } from '../server/system.ts';
import type { PermitAnswer, PermitRequest } from '../shared/agents/site-permits.ts';
import type { RandomSource } from '../shared/clock.ts';
import type { Policy } from '../shared/fleet/policy.ts';
import { SITE_HUB, siteHubOf } from '../shared/kinds/pods/site-permit.ts';
import type { Log } from '../shared/observability/log.ts';
import { type ItemStore, StoreFault } from '../shared/store/item-store.ts';
import { type MemoryItemStore, memoryItemStore } from '../shared/store/memory/item-store.ts';
import { HUB, headersOf, OPERATOR, simulationAuthenticator } from './access.ts';
import type { ClusterView } from './cluster-view.ts';
import type { Mark } from './coverage.ts';
import type { FaultPlan } from './faults/catalogue.ts';
import { type Functions, lambdaFunctions, type Process } from './faults/processes.ts';
import { withStaleHeads } from './faults/stale-heads.ts';
import { type ServingHub, startHubClients } from './hub-clients.ts';
import { type ClusterApi, HubLink, type LinkTrouble } from './hub-link.ts';
import { HubLife, type HubProcess, openHub, type PlantedHub } from './hub-process.ts';
import { type HubLaw, SECRETS_BINDING } from './laws/hub.ts';
import type { RecentChanges } from './recent-changes.ts';
import { oneOf, seededUuid } from './seeded-random.ts';
import type { VirtualTime } from './virtual-time.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const TROUBLES = [
  'cut',
  'cut',
  'noAnswers',
  'bad',
  'bad',
  'killed',
  'killed',
  'lost',
  'disk',
  'clock',
  'expired',
  'narrow',
] as const;
/** Between two troubles of one hub. Milliseconds. */
const QUIET_MIN_MS = 20_000;
const QUIET_MEAN_MS = 110_000;
const TROUBLE_MEAN_MS = 45_000;
/** One cut in so many outlasts the log of the cluster, in runs that are long enough. */
const LONG_CUT_SHARE = 0.15;
const LONG_CUT_MS = 1.3 * HOUR_MS;
/** The first trouble of a hub that moves pods is a power cut, and then one in so many. */
const POWER_CUT_SHARE = 0.5;
const FIRST_LOOK_MS = 10_000;
/** After the cut, milliseconds: machines are lost; the clock of the hub steps; its process dies; the link recovers. */
const POWER_CUT = {
  machines: [2_000, 30_000],
  clock: [90_000, 400_000],
  // Pods that may run ten minutes without a permit are moved before.
  killed: [780_000, 900_000],
  link: [1_200_000, 1_800_000],
} as const;
const SITE_LOOK_MS = 5_000;
/** Of the sites that move pods. */
const SWITCH_SHARE = 0.5;
/** A program that has no answer is ended. Milliseconds. */
const SWITCH_TIMEOUT_MS = 60_000;
/** A request that began in trouble may fail after it. Milliseconds. */
const AFTER_TROUBLE_MS = 31_000;
const DOWN_MAX_MS = 40_000;
/** A process that is killed is so at one of these calls. */
const CALLS_BEFORE_KILL_MAX = 120;
const EXPIRE_EVERY_MS = 600_000;
/** Between two changes of the right to read Secrets. Milliseconds. */
const RIGHTS_MEAN_MS = 150_000;
const RBAC = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';
const HUBS_BINDING = 'hubs';

interface HubWorldOptions {
  readonly law: HubLaw;
  readonly recent: RecentChanges;
  readonly time: VirtualTime;
  readonly plan: FaultPlan;
  readonly policy: Policy;
  readonly view: ClusterView;
  /** Epoch milliseconds. */
  readonly endMs: number;
  readonly random: (what: string) => () => number;
  readonly storeOf: (process: Process, plan: FaultPlan, fraction: () => number) => ItemStore;
  readonly planted: (items: ItemStore, process: Process) => ItemStore;
  readonly plant: PlantedHub;
  /** The first hub moves pods of silent machines. */
  readonly reschedules: boolean;
  readonly hit: (mark: Mark) => void;
  /** Machines that run copies cannot reach the hub for a while. */
  readonly loseCopies: () => void;
  /** Machines with pods that may move. */
  readonly movableOn: () => readonly string[];
  /** Two machines that run pods that may move: one is off, one cannot reach the hub, for longer than pods may run. */
  readonly loseMachines: () => void;
  /** The power of a machine fails for a while. */
  readonly crash: (nodeName: string, offMs: number) => void;
  readonly logOf: (process: Process) => Log;
  readonly log: (subject: string, text: string) => void;
  readonly onFault: (name: 'api', faults: readonly unknown[]) => void;
  /** A request of a hub failed without a trouble of its own. */
  readonly onFailed: (what: string) => void;
}

/** The permits of the first hub, for machines. Undefined: no answer. */
export type AskForPermits = (nodeName: string, request: PermitRequest) => Promise<PermitAnswer | undefined>;

export interface HubWorld {
  readonly functions: Functions<ClusterApi>;
  readonly permits: AskForPermits;
}

/** Runs until the time does. */
export function hubWorld(options: HubWorldOptions): HubWorld {
  const { recent, time, policy, random } = options;
  const plan = options.plan.apart('hubs');
  const [calls, code, fraction] = [random('hub calls'), random('hub code'), random('hubs')];
  const source: RandomSource = { fraction: code, uuid: () => seededUuid(code) };
  const functions = lambdaFunctions<ClusterApi>({
    time,
    plan,
    fraction: random('hub processes'),
    policy,
    compose(process) {
      const store = options.storeOf(process, plan, calls);
      return composeApi({
        items: options.planted(withStaleHeads(store, { recent, time, plan }), process),
        authenticator: simulationAuthenticator,
        clock: process.clock,
        random: source,
        pause: (milliseconds: number) => time.sleep(milliseconds),
        log: options.logOf(process),
        policy: process.policy,
        ...inProcess,
      });
    },
  });
  const ofSwitch = random('power switch');
  const common = { ...options, plan, functions, fraction, ofSwitch, hasSwitch: ofSwitch() < SWITCH_SHARE };
  const hubs = Array.from(
    { length: fraction() < 0.6 ? 1 : 2 },
    (_, index) => new Hub(`hub-${index + 1}`, common, index === 0),
  );
  for (const hub of hubs) hub.start();
  startHubClients({ ...common, hubs });
  void grantRights(common);
  if (options.reschedules) void useSite(common);
  return { functions, permits: (nodeName, request) => hubs[0]!.permit(nodeName, request) };
}

interface HubOptions extends HubWorldOptions {
  /** The site has a power switch. */
  readonly hasSwitch: boolean;
  /** Of the switch. */
  readonly ofSwitch: () => number;
  readonly functions: Functions<ClusterApi>;
  readonly fraction: () => number;
}

class Hub implements ServingHub {
  readonly name: string;
  readonly link: HubLink;
  process: HubProcess | undefined;
  failedAtMs = Number.NEGATIVE_INFINITY;
  readonly #options: HubOptions;
  #file: MemoryItemStore = newFile();
  /** Changes of its file up to here were shown to the law. */
  #shown = 0;
  #clockAheadMs = 0;
  #isDiskFailing = false;
  #isTroubled = false;
  #life = new HubLife();
  /** Since when its process runs without a trouble. */
  #sinceMs: number;

  /** It moves pods of silent machines. */
  readonly #moves: boolean;

  constructor(name: string, options: HubOptions, isFirst: boolean) {
    this.name = name;
    this.#moves = options.reschedules && isFirst;
    this.#options = options;
    this.#sinceMs = options.time.nowMs();
    this.link = new HubLink({
      ...options,
      onFailed: (what, status) => {
        this.failedAtMs = options.time.nowMs();
        const isAfterTrouble = options.time.nowMs() - this.#sinceMs < AFTER_TROUBLE_MS;
        if (!this.#isTroubled && !isAfterTrouble) options.onFailed(`${this.name}: ${status} ${what}`);
      },
      onList: (resource) => options.law.onRelisted(this, resource),
    });
  }

  start(): void {
    this.#options.law.follow(this);
    void this.#run();
    void this.#sufferRepeatedly();
  }

  calmSinceMs(): number | undefined {
    return this.#isTroubled || this.process === undefined ? undefined : this.#sinceMs;
  }

  holds(resource: string): boolean {
    return this.process?.replica.holds(resource) === true;
  }

  changes() {
    const changes = this.#file.changes('objects', this.#shown);
    this.#shown = changes.at(-1)?.sequence ?? this.#shown;
    this.#file.forgetChanges('objects', this.#shown);
    return changes;
  }

  #between(least: number, most: number): number {
    return least + this.#options.fraction() * (most - least);
  }

  #exponential(meanMs: number): number {
    return -Math.log(1 - this.#options.fraction()) * meanMs;
  }

  /** One process after the other, over the same file. */
  async #run(): Promise<void> {
    const { time, fraction, plant } = this.#options;
    const clock = { nowMs: () => Math.round(time.nowMs() + this.#clockAheadMs) };
    for (;;) {
      const life = new HubLife();
      this.#life = life;
      const opening = openHub(life, {
        ...{ clock, time, fraction, plant, file: this.#file, log: this.#log() },
        upstream: this.link.upstream(life, HUB),
        isDiskFailing: () => this.#isDiskFailing,
        reschedulesAs: this.#moves ? HUB : undefined,
        switchOff: this.#options.hasSwitch && this.#moves ? (nodeName) => this.#switchOff(nodeName) : undefined,
        onDiskFault: () => {
          this.failedAtMs = time.nowMs();
        },
      });
      const opened = await Promise.race([opening, life.ended]);
      if (opened !== undefined) {
        this.process = opened;
        this.#sinceMs = time.nowMs();
        void this.#reschedule(opened);
        await life.ended;
      }
      this.process = undefined;
      this.#options.log(this.name, 'its process dies');
      await time.sleep(this.#between(100, DOWN_MAX_MS));
    }
  }

  /** Undefined: no process answers. A request of a machine dies with the process. */
  async permit(nodeName: string, request: PermitRequest): Promise<PermitAnswer | undefined> {
    const { process } = this;
    if (process?.site === undefined) return undefined;
    const answer = process.site.permit(nodeName, request).catch((error: unknown) => {
      if (!(error instanceof StoreFault)) throw error;
      return undefined;
    });
    const answered = await Promise.race([answer, process.life.ended.then(() => undefined)]);
    return process.life.isDead ? undefined : answered;
  }

  /** It is slow, and may fail before or after it did something. The machine may be on again before the answer. */
  async #switchOff(nodeName: string): Promise<boolean> {
    const { time, ofSwitch, crash, hit, log } = this.#options;
    await time.sleep(ofSwitch() * 20_000);
    const happens = ofSwitch() < 0.8;
    if (happens) crash(nodeName, 1_000 + ofSwitch() ** 3 * 1_800_000);
    await time.sleep(ofSwitch() < 0.2 ? SWITCH_TIMEOUT_MS : ofSwitch() * 20_000);
    const isKnown = happens && ofSwitch() < 0.8;
    if (isKnown) hit('S2:switched-off');
    log(
      this.name,
      `the switch ${happens ? 'ends' : 'does not end'} the power of ${nodeName}, and ${isKnown ? '' : 'does not '}say so`,
    );
    return isKnown;
  }

  async #reschedule({ site, life }: HubProcess): Promise<void> {
    while (site !== undefined && !life.isDead) {
      const look = site.look().catch((error: unknown) => {
        if (!(error instanceof StoreFault) && !(error instanceof UpstreamUnreachable)) throw error;
      });
      await Promise.race([look, life.ended]);
      await this.#options.time.sleep(SITE_LOOK_MS);
    }
  }

  #log(): Log {
    const { log } = this.#options;
    const { hit } = this.#options;
    const line = (message: string, { error, resource = '' }: Record<string, unknown> = {}): void =>
      log(this.name, [message, resource, error instanceof Error ? error.message : ''].join(' ').trim());
    const site = (message: string, { pod, ...fields }: Record<string, unknown> = {}): void => {
      const mark = SITE_MARKS[message];
      if (mark === undefined) line(message, fields);
      else {
        hit(mark);
        log(this.name, `${message}: ${JSON.stringify({ pod, ...fields })}`);
      }
    };
    // Each list is logged: hundreds of lines of a start.
    return {
      debug: line,
      info: (message, fields) => SITE_MARKS[message] && site(message, fields),
      warn: site,
      error: line,
    };
  }

  async #sufferRepeatedly(): Promise<void> {
    const { time, fraction, log } = this.#options;
    let expiredAtMs = time.nowMs();
    let isFirstTrouble = true;
    // A copy of a cluster in which nothing may move shows nothing.
    while (this.#moves && this.#options.movableOn().length < 2) await time.sleep(FIRST_LOOK_MS);
    for (;;) {
      await time.sleep(QUIET_MIN_MS + this.#exponential(QUIET_MEAN_MS));
      if (time.nowMs() - expiredAtMs >= EXPIRE_EVERY_MS && this.process !== undefined) {
        expiredAtMs = time.nowMs();
        this.#file.expire('objects', this.process.replica.versionClock.nowMs() / 1_000);
      }
      if (this.#moves && (isFirstTrouble || fraction() < POWER_CUT_SHARE)) {
        isFirstTrouble = false;
        await this.#powerCut();
        continue;
      }
      const name = oneOf(TROUBLES, fraction)!;
      log(this.name, `has trouble: ${name}`);
      await this.#suffer(name);
      log(this.name, `has no trouble any more: ${name}`);
    }
  }

  async #suffer(name: (typeof TROUBLES)[number]): Promise<void> {
    const { time, fraction } = this.#options;
    const lastsMs = 2_000 + this.#exponential(TROUBLE_MEAN_MS);
    switch (name) {
      case 'clock':
        this.#clockAheadMs = fraction() < 0.5 ? this.#between(-DAY_MS, DAY_MS) : this.#between(-60_000, 60_000);
        return;
      case 'expired':
        this.link.isExpired = true;
        return;
      case 'narrow':
        this.link.isNarrow = true;
        await time.sleep(2 * lastsMs);
        this.link.isNarrow = false;
        return;
      case 'killed':
        return this.#kill();
      case 'lost':
        await this.#kill();
        this.#loseFile();
        return;
      case 'disk':
        return this.#troubled(lastsMs, (is) => {
          this.#isDiskFailing = is;
        });
      default:
        return this.#linkTrouble(name, lastsMs);
    }
  }

  /** At some call, or soon. */
  async #kill(): Promise<void> {
    const { time, fraction } = this.#options;
    const life = this.#life;
    life.dieAtCall(1 + Math.floor(fraction() ** 2 * CALLS_BEFORE_KILL_MAX), fraction() < 0.5);
    await Promise.race([life.ended, time.sleep(this.#between(0, 20_000))]);
    life.kill();
  }

  /** While no process runs. */
  #loseFile(): void {
    this.changes();
    this.#file = newFile();
    this.#shown = 0;
    this.#options.law.onLost(this);
  }

  #linkTrouble(name: LinkTrouble, lastsMs: number): Promise<void> {
    const { time, fraction, endMs } = this.#options;
    const isLong = name === 'cut' && endMs - time.nowMs() > 2 * LONG_CUT_MS && fraction() < LONG_CUT_SHARE;
    return this.#troubled(isLong ? LONG_CUT_MS : lastsMs, (is) => {
      this.link.trouble = is ? name : undefined;
    });
  }

  /**
   * A power cut ends the link of the site and two machines. The hub moves their pods. Its clock steps before that. Its
   * process dies after it, and machines with copies cannot ask the next one. The two machines return meanwhile.
   */
  async #powerCut(): Promise<void> {
    const { time, log, loseCopies, loseMachines } = this.#options;
    const within = ([least, most]: readonly [number, number]): number => this.#between(least, most);
    const after = (milliseconds: number, happen: () => void): void => time.after(milliseconds, happen);
    log(this.name, 'has no link after a power cut');
    this.#isTroubled = true;
    this.link.trouble = 'cut';
    after(within(POWER_CUT.machines), loseMachines);
    after(within(POWER_CUT.clock), () => {
      this.#clockAheadMs = this.#between(-DAY_MS / 4, DAY_MS);
    });
    after(within(POWER_CUT.killed), () => {
      void this.#kill();
      loseCopies();
    });
    await time.sleep(within(POWER_CUT.link));
    this.link.trouble = undefined;
    this.#isTroubled = false;
    this.#sinceMs = time.nowMs();
    log(this.name, 'has its link again');
  }

  async #troubled(lastsMs: number, set: (is: boolean) => void): Promise<void> {
    this.#isTroubled = true;
    set(true);
    // Often its process dies meanwhile, and another one begins without the cluster.
    if (this.#options.fraction() < 0.3) {
      await this.#options.time.sleep(lastsMs / 2);
      await this.#kill();
      await this.#options.time.sleep(lastsMs / 2);
    } else await this.#options.time.sleep(lastsMs);
    set(false);
    this.#isTroubled = false;
    this.#sinceMs = this.#options.time.nowMs();
  }
}

const SITE_MARKS: Readonly<Record<string, Mark>> = {
  'a pod of a silent machine is moved without the cluster': 'S2:moved',
  'a copy of a silent machine is moved on without the cluster': 'S2:moved-on',
  'the cluster has the copy of a pod': 'S2:merged',
  'the copy of a pod is withdrawn': 'S2:withdrawn',
  'a pod of a silent machine is given up': 'S2:given-up',
};

const newFile = (): MemoryItemStore => memoryItemStore({ changesOf: ['objects'] });

/** A person lets hubs read the cluster, and changes again and again whether they may read Secrets. */
async function grantRights({ functions, time, fraction, log }: HubOptions): Promise<void> {
  const send = async (method: string, path: string, role?: string): Promise<number> => {
    const outcome = await functions.invoke('api', OPERATOR, (api) =>
      api({
        method,
        path,
        query: new URLSearchParams(),
        headers: { ...headersOf(OPERATOR), 'content-type': 'application/json' },
        body: Buffer.from(role === undefined ? '' : JSON.stringify(bindingOf(path, role))),
        sourceIp: '192.0.2.1',
      }),
    );
    return outcome.kind === 'done' ? outcome.value.status : 0;
  };
  const bindingOf = (_: string, role: string) => ({
    metadata: { name: role === SECRETS_ROLE ? SECRETS_BINDING : HUBS_BINDING },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: HUB }],
  });
  while (![201, 409].includes(await send('POST', RBAC, HUB_ROLE))) await time.sleep(1_000);
  for (let isGranted = false; ; isGranted = !isGranted) {
    const path = isGranted ? `${RBAC}/${SECRETS_BINDING}` : RBAC;
    const done = isGranted ? [200, 404] : [201, 409];
    while (!done.includes(await send(isGranted ? 'DELETE' : 'POST', path, isGranted ? undefined : SECRETS_ROLE))) {
      await time.sleep(1_000);
    }
    log('', `a person ${isGranted ? 'withdraws' : 'grants'} the right of hubs to read Secrets`);
    await time.sleep(60_000 + -Math.log(1 - fraction()) * RIGHTS_MEAN_MS);
  }
}

const HUB_ROLE = 'system:nodekeeper:hub';
const SECRETS_ROLE = 'system:nodekeeper:hub-secrets';

const NODES_EVERY_MS = 10_000;

/** A person lets the first hub move pods of all machines. The machines say that they obey it. */
async function useSite({ functions, time, view }: HubOptions): Promise<void> {
  const send = async (
    method: string,
    path: string,
    body: object,
    contentType = 'application/json',
  ): Promise<number> => {
    const outcome = await functions.invoke('api', OPERATOR, (api) =>
      api({
        ...{ method, path, query: new URLSearchParams() },
        headers: { ...headersOf(OPERATOR), 'content-type': contentType },
        body: Buffer.from(JSON.stringify(body)),
        sourceIp: '192.0.2.1',
      }),
    );
    return outcome.kind === 'done' ? outcome.value.status : 0;
  };
  const create = async (path: string, body: object): Promise<void> => {
    while (![201, 409].includes(await send('POST', path, body))) await time.sleep(1_000);
  };
  const names = Array.from({ length: 100 }, (_, index) => `m-${index}`);
  await create('/apis/nodekeeper.dev/v1alpha1/sitepolicies', {
    metadata: { name: 'site' },
    spec: { hub: HUB, nodes: names, namespaces: ['default'] },
  });
  for (;;) {
    for (const node of view.nodes.values()) {
      if (siteHubOf(node) !== undefined) continue;
      const body = { metadata: { annotations: { [SITE_HUB]: HUB } } };
      await send('PATCH', `/api/v1/nodes/${node.metadata.name}`, body, 'application/merge-patch+json');
    }
    await time.sleep(NODES_EVERY_MS);
  }
}

/**
 * Hubs beside the cluster of a simulation, with their troubles. Everything of them has random numbers of its own, and
 * functions of its own that serve them: only what clients write through them concerns the others.
 */
import { composeApi } from '../functions/api/work.ts';
import { inProcess } from '../server/system.ts';
import type { RandomSource } from '../shared/clock.ts';
import type { Policy } from '../shared/fleet/policy.ts';
import type { Log } from '../shared/observability/log.ts';
import type { ItemStore } from '../shared/store/item-store.ts';
import { type MemoryItemStore, memoryItemStore } from '../shared/store/memory/item-store.ts';
import { HUB, headersOf, OPERATOR, simulationAuthenticator } from './access.ts';
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
  /** Epoch milliseconds. */
  readonly endMs: number;
  readonly random: (what: string) => () => number;
  readonly storeOf: (process: Process, plan: FaultPlan, fraction: () => number) => ItemStore;
  readonly planted: (items: ItemStore, process: Process) => ItemStore;
  readonly plant: PlantedHub;
  readonly logOf: (process: Process) => Log;
  readonly log: (subject: string, text: string) => void;
  readonly onFault: (name: 'api', faults: readonly unknown[]) => void;
  /** A request of a hub failed without a trouble of its own. */
  readonly onFailed: (what: string) => void;
}

/** Runs until the time does. */
export function hubWorld(options: HubWorldOptions): Functions<ClusterApi> {
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
  const common = { ...options, plan, functions, fraction };
  const hubs = Array.from({ length: fraction() < 0.6 ? 1 : 2 }, (_, index) => new Hub(`hub-${index + 1}`, common));
  for (const hub of hubs) hub.start();
  startHubClients({ ...common, hubs });
  void grantRights(common);
  return functions;
}

interface HubOptions extends HubWorldOptions {
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

  constructor(name: string, options: HubOptions) {
    this.name = name;
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
        onDiskFault: () => {
          this.failedAtMs = time.nowMs();
        },
      });
      const opened = await Promise.race([opening, life.ended]);
      if (opened !== undefined) {
        this.process = opened;
        this.#sinceMs = time.nowMs();
        await life.ended;
      }
      this.process = undefined;
      this.#options.log(this.name, 'its process dies');
      await time.sleep(this.#between(100, DOWN_MAX_MS));
    }
  }

  #log(): Log {
    const { log } = this.#options;
    const line = (message: string, { error, resource = '' }: Record<string, unknown> = {}): void =>
      log(this.name, [message, resource, error instanceof Error ? error.message : ''].join(' ').trim());
    // Each list is logged: hundreds of lines of a start.
    return { debug: line, info: () => undefined, warn: line, error: line };
  }

  async #sufferRepeatedly(): Promise<void> {
    const { time, fraction, log } = this.#options;
    let expiredAtMs = time.nowMs();
    for (;;) {
      await time.sleep(QUIET_MIN_MS + this.#exponential(QUIET_MEAN_MS));
      if (time.nowMs() - expiredAtMs >= EXPIRE_EVERY_MS && this.process !== undefined) {
        expiredAtMs = time.nowMs();
        this.#file.expire('objects', this.process.replica.versionClock.nowMs() / 1_000);
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

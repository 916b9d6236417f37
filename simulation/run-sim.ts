/**
 * The real code on virtual time under faults, made from one seed: heartbeat, API, streams and controllers over the memory
 * store, each invocation in a process that may be slow, wrong about the time, or killed. After every step the laws are checked
 * over what is true; the first that is broken ends the run with its step and what led to it. The same options replay it exactly.
 */
import { createHash } from 'node:crypto';
import { gzip } from '../shared/adapters/gzip/gzip.ts';
import { type MemoryCloud, memoryCloud } from '../shared/adapters/memory/cloud.ts';
import { memoryItemStore } from '../shared/adapters/memory/item-store.ts';
import { readYaml } from '../shared/adapters/yaml/read-yaml.ts';
import { composeApi } from '../shared/api/compose.ts';
import { clusterObjects } from '../shared/api/storage/cluster-objects.ts';
import { fleetControllers } from '../shared/controllers/index.ts';
import { PROBE_LEASE } from '../shared/domain/access/probe-identity.ts';
import { defaultPolicy, type Policy } from '../shared/domain/policy.ts';
import { serveHeartbeat } from '../shared/heartbeat/renew-lease.ts';
import type { Clock, RandomSource } from '../shared/ports/clock.ts';
import { type ItemKey, type ItemStore, StoreFault } from '../shared/ports/item-store.ts';
import type { Log } from '../shared/ports/log.ts';
import type { Probe } from '../shared/ports/probe.ts';
import { PROBE, simulationAuthenticator } from './access.ts';
import { clusterView } from './cluster-view.ts';
import { createCoverage, type Mark } from './coverage.ts';
import { createEndpoint, type EndpointRequest } from './endpoint.ts';
import { FAULT_NAMES, type FaultName, type FaultPlan, faultPlan, faultsOf } from './faults/catalogue.ts';
import { faultyCloud, faultyInstanceEvents } from './faults/faulty-cloud.ts';
import { faultyNetwork, type Send } from './faults/faulty-network.ts';
import { faultyStore } from './faults/faulty-store.ts';
import { faultyStreams } from './faults/faulty-streams.ts';
import { faultyTicks } from './faults/faulty-ticks.ts';
import { isLiar, lyingClock } from './faults/lying-clocks.ts';
import { type Functions, lambdaFunctions, type Process, type Program } from './faults/processes.ts';
import { throttledFor } from './faults/throttled-items.ts';
import { badObjectsHarmNobodyElse } from './laws/bad-objects.ts';
import { decidesNothingTwice } from './laws/idempotence.ts';
import type { Broken, Law, LawContext } from './laws/law.ts';
import { nodesOfTheLivingStay } from './laws/machines.ts';
import { podCidrsAreNobodyElses } from './laws/pod-cidrs.ts';
import { podsHaveTheirTime } from './laws/pods.ts';
import { darkIsNobodysFault, zonesKeepTheirRate } from './laws/rates.ts';
import { beatingIsNotMarked, outageIsForgiven, silentIsMarked, steadyGapMs } from './laws/silence.ts';
import { createTruth, type Happened, type Writer } from './laws/truth.ts';
import { volumesAreKept } from './laws/volumes.ts';
import { watchersAreTold } from './laws/watches.ts';
import { writesAreKept } from './laws/writes.ts';
import { type PartName, partsOf } from './parts.ts';
import { cidrPolicyOf, givePodCidrs } from './people-cidrs.ts';
import { BY_MACHINE, taintByHand } from './people-taints.ts';
import { type Poison, poisonMachines } from './poison.ts';
import { recentChanges } from './recent-changes.ts';
import { hashOf, seededFraction, seededUuid } from './seeded-random.ts';
import { SIMULATED_REGION } from './simulated-instance.ts';
import { tellStory } from './story.ts';
import { virtualTime } from './virtual-time.ts';
import { runVolumes } from './volumes.ts';
import { watchWorld } from './watch-world.ts';

const START_MS = Date.UTC(2026, 0, 1);
const ACCOUNT_ID = '123456789012';
const SKEW_MS = 2_000;
/** Liveness is looked at this often. Milliseconds. */
const LOOK_EVERY_MS = 500;
/** What has ended may still have something on its way. */
const CALM_AFTER_MS = 10_000;
/** What was decided by an old policy has had its effect, or is decided anew. */
const ROLLED_AFTER_MS = 120_000;
const EXPIRE_EVERY_MS = 1_800_000;
/** Lines of what happened that are kept, and shown. */
const LINES_KEPT = 20_000;
const LINES_TOLD = 60;
const HEARD = 'is heard';
/** Of all machines, besides one in any case. */
const POISONED_SHARE = 0.1;
const NO_NAMES: ReadonlySet<string> = new Set();

export interface SimOptions {
  readonly seed: number;
  readonly hours: number;
  /** Machines at the beginning; made from the seed unless told. */
  readonly nodes?: number;
  /** All unless told. */
  readonly faults?: readonly FaultName[];
  /** How many of all faults come together, in the mean; with few faults asked for, more of them are. */
  readonly faultsAStorm?: number;
  /** Parts of the world that only some seeds have; the seed's own unless told. */
  readonly parts?: readonly PartName[];
  /** Instead of what the seed makes of it. */
  readonly policy?: Partial<Policy>;
  /** The machines of `lyingClocks` lie by errors that stand still, or tell the truth: everything else is the same. */
  readonly clocks?: 'steady' | 'honest';
  /** Receives what we decided and when, a line each. */
  readonly onDecision?: (decision: Decision) => void;
  /** A bug to plant: the laws must find it. */
  readonly plant?: {
    readonly items?: (items: ItemStore, process: Process) => ItemStore;
    readonly policy?: (policy: Policy) => Policy;
    readonly probe?: (probe: Probe) => Probe;
  };
}

/** A mark, taint, lift or deletion that no person or machine asked for. */
export interface Decision {
  /** From the start. */
  readonly atMs: number;
  readonly subject: string;
  readonly text: string;
}

export interface SimFailure extends Broken {
  readonly seed: number;
  readonly step: number;
  /** From the start. */
  readonly atMs: number;
  /** The last lines about its subjects. */
  readonly timeline: readonly string[];
}

export interface SimResult {
  readonly seed: number;
  readonly nodes: number;
  readonly zones: number;
  readonly policy: Partial<Policy>;
  readonly parts: readonly PartName[];
  readonly nodeHours: number;
  readonly steps: number;
  readonly faults: Readonly<Record<FaultName, number>>;
  readonly marks: Readonly<Record<Mark, number>>;
  readonly failure: SimFailure | undefined;
}

/** A policy of the seed's making: small zones, rates and times that make every rule's branches come up within hours. */
function policyOf(fraction: () => number): Partial<Policy> {
  const oneOf = <T>(...choices: readonly T[]): T => choices[Math.floor(fraction() * choices.length)]!;
  const timing = oneOf<Partial<Policy>>(
    {},
    {},
    {},
    { nodeMonitorPeriodSeconds: 10, nodeMonitorGracePeriodSeconds: 50 },
    {
      nodeMonitorGracePeriodSeconds: 60,
    },
  );
  return {
    ...timing,
    nodeEvictionRatePerSecond: oneOf(0.1, 0.1, 0.05, 0.5),
    secondaryNodeEvictionRatePerSecond: oneOf(0.01, 0.05),
    largeClusterSizeThreshold: oneOf(50, 5),
    podEvictionTimeoutSeconds: oneOf(300, 60, 20),
    fullDisruption: oneOf('normal', 'normal', 'hold'),
    terminatedPodGcThreshold: oneOf(12_500, 2),
  };
}

export async function runSim(options: SimOptions): Promise<SimResult> {
  const { seed, hours, plant = {} } = options;
  const random = (what: string): (() => number) => seededFraction(hashOf(`${seed} ${what}`));
  const shape = random('shape');
  const parts = options.parts ?? partsOf(seed);
  const nodes = options.nodes ?? 5 + Math.floor(shape() ** 2 * 40);
  const zones = 1 + Math.floor(shape() * 3.999);
  const blocks = parts.includes('podCidrs') ? cidrPolicyOf(random('pod cidrs'), nodes) : {};
  // Short enough to be over within a storm and the calm after it.
  const patience = parts.includes('volumes') ? { forceDetachTimeoutSeconds: 90 } : {};
  const chosen = { ...policyOf(shape), ...blocks, ...patience, ...options.policy };
  const policy: Policy = { ...defaultPolicy, ...chosen };
  const endMs = START_MS + hours * 3_600_000;
  const time = virtualTime(START_MS);
  const plan = faultPlan({
    seed,
    startMs: START_MS,
    endMs,
    faults: options.faults ?? faultsOf(seed),
    nowMs: time.nowMs,
    ...(options.faultsAStorm === undefined ? {} : { faultsAStorm: options.faultsAStorm }),
  });
  const tables = memoryItemStore({ changesOf: ['health', 'objects', 'control'] });
  const recent = recentChanges(tables);
  const view = clusterView(tables);
  const cloud = memoryCloud({
    clock: time,
    region: SIMULATED_REGION,
    accountId: ACCOUNT_ID,
    startingMs: 5_000,
    stoppingMs: 10_000,
    shuttingDownMs: Math.floor(shape() * 30_000),
  });
  const told: MemoryCloud = {
    ...cloud,
    detachVolume(request) {
      volumes.onDetach(request.volumeId);
      return cloud.detachVolume(request);
    },
  };
  const overlooking = { fromMs: Number.NEGATIVE_INFINITY };
  const codeRandom = random('code');
  const source: RandomSource = { fraction: codeRandom, uuid: () => seededUuid(codeRandom) };
  const network = random('network');
  const lookRandom = random('look');

  // What happened, for people.
  const lines: { readonly atMs: number; readonly subject: string; readonly text: string }[] = [];
  const tell = (subject: string, text: string): void => {
    lines.push({ atMs: time.nowMs(), subject, text });
    if (lines.length > 2 * LINES_KEPT) lines.splice(0, LINES_KEPT);
  };
  let failure: SimFailure | undefined;
  /** Since when there are bad objects. */
  let poisonedSinceMs: number | undefined;
  let poison: Poison | undefined;
  const fail = (broken: Broken): void => {
    const isPoison = poisonedSinceMs !== undefined && broken.isLate === true;
    failure ??= {
      law: isPoison ? 'L12' : broken.law,
      subjects: broken.subjects,
      message: isPoison ? `${broken.message} (${broken.law}, with bad objects about)` : broken.message,
      seed,
      step: time.steps(),
      atMs: time.nowMs() - START_MS,
      timeline: timelineOf(lines, broken.subjects, time.nowMs()),
    };
  };

  // Clocks of ours, and how far they have stepped.
  const jumps: { readonly atMs: number; readonly byMs: number }[] = [];
  let functions: Functions;
  let watchFunctions: Functions<unknown> | undefined;
  /** Policies that were replaced, for as long as something decided by them may still have its effect. */
  const replaced: { readonly policy: Policy; readonly untilMs: number }[] = [];
  const policies = (): readonly Policy[] => [
    ...functions.policies().map((each) => realPolicies.get(each) ?? each),
    ...replaced.flatMap((old) => (time.nowMs() < old.untilMs ? [old.policy] : [])),
  ];
  /** The laws go by what was asked for, not by what a planted bug makes of it. */
  const realPolicies = new Map<Policy, Policy>();
  const asPlanted = (each: Policy): Policy => {
    const planted = plant.policy?.(each) ?? each;
    realPolicies.set(planted, each);
    return planted;
  };
  /** Policies are changed for good when the last process with an older one is gone, and what it decided has had its time. */
  let rolledUntilMs = START_MS;

  const first = hashOf(`${seed} first poisoned`) % nodes;
  /** Of machines, whether poison is about yet or not. */
  const isPoisoned = (name: string): boolean =>
    plan.has('poison') &&
    (name === `m-${first}` || seededFraction(hashOf(`${seed} poisoned ${name}`))() < POISONED_SHARE);

  const truth = createTruth(() => steadyGapMs(context));
  const context: LawContext = {
    truth,
    plan,
    nowMs: time.nowMs,
    most: (of) => Math.max(...policies().map(of)),
    least: (of) => Math.min(...policies().map(of)),
    calmSinceMs() {
      const sinceMs = plan.calmSinceMs();
      if (sinceMs === undefined) return undefined;
      const fromMs = Math.max(sinceMs, rolledUntilMs);
      return time.nowMs() - fromMs < CALM_AFTER_MS ? undefined : fromMs;
    },
    clockSlackMs(sinceMs, of) {
      const steps = jumps.reduce((sum, { atMs, byMs }) => (atMs >= sinceMs - 60_000 ? sum + Math.abs(byMs) : sum), 0);
      return steps + (of !== 'steps' && plan.has('skew') ? SKEW_MS : 0);
    },
    machine: (name) => story.machine(name),
    isPoisoned,
    poisonSlackMs: () => (poisonedSinceMs === undefined ? 0 : policy.nodeMonitorPeriodSeconds * 1_000),
    fail,
  };
  const writes = writesAreKept(context);
  const watches = watchersAreTold(context);
  const cidrs = podCidrsAreNobodyElses(context, policy, (mark) => coverage.hit(mark));
  const volumes = volumesAreKept(context, cloud, (mark) => coverage.hit(mark));
  const laws: readonly Law[] = [
    beatingIsNotMarked(context),
    silentIsMarked(context),
    zonesKeepTheirRate(context),
    darkIsNobodysFault(context),
    outageIsForgiven(context),
    nodesOfTheLivingStay(context),
    podsHaveTheirTime(context),
    badObjectsHarmNobodyElse(context),
    writes,
    watches,
    cidrs,
    volumes,
  ];
  const coverage = createCoverage((uid) =>
    [...truth.pods.values()].some((pod) => pod.uid === uid && !pod.isTerminating),
  );

  // Whether node-monitor has just finished a tick in which nobody else wrote what it reads.
  let mayDecideAgain = false;
  let othersWroteAtMs = START_MS;
  // Who wrote in this step.
  let writer: Writer | undefined;
  const onFault = (name: string, faults: readonly unknown[]): void => {
    for (const fault of faults.flatMap((each) => (each instanceof AggregateError ? [each, ...each.errors] : [each]))) {
      const text = fault instanceof Error ? `${fault.name} ${fault.message}` : String(fault);
      tell('', `${name} failed: ${text}`);
      // Refused and lost calls are faults of ours; anything else is a bug, at any time.
      const isInjected = fault instanceof StoreFault || fault instanceof AggregateError;
      // What one bad object does to its own calls is reported, as here; what it does to others is L12.
      if (poisonedSinceMs !== undefined) continue;
      if (!isInjected || context.calmSinceMs() !== undefined) {
        fail({ law: 'calm', subjects: [], message: `${name} failed with nothing in its way: ${text}` });
      }
    }
  };

  const planted = (items: ItemStore, process: Process): ItemStore => plant.items?.(items, process) ?? items;
  const storeOf = (process: Process, faults: FaultPlan, fraction: () => number): ItemStore =>
    faultyStore(process, {
      tables: throttledFor(tables, () => poison?.throttled ?? NO_NAMES),
      recent,
      time,
      plan: faults,
      fraction,
      onEffect: (by) => {
        writer = { name: by.name, who: by.who };
      },
    });
  const logOf = (process: Process): Log => ({
    debug: () => undefined,
    info: (message, fields) => coverage.onLog(message, fields),
    warn: (message, fields) => coverage.onLog(message, fields),
    error: (message, fields) => {
      const error = fields?.['error'];
      onFault(process.name, [error instanceof Error ? error : new Error(message)]);
    },
  });

  function compose(process: Process): Program {
    const items = planted(storeOf(process, plan, network), process);
    const log = logOf(process);
    const { clock } = process;
    const pause = (milliseconds: number): Promise<void> => time.sleep(milliseconds);
    const probe = plant.probe?.(ownProbe(send, clock, time.sleep)) ?? ownProbe(send, clock, time.sleep);
    const periodMs = policy.nodeMonitorPeriodSeconds * 1_000;
    return {
      controllers: fleetControllers({
        items,
        clock,
        random: source,
        policy: process.policy,
        log,
        meter: { add: () => undefined },
        probe,
        pause,
        cloud: faultyCloud(process, { cloud: told, time, plan, fraction: network, periodMs, overlooking }),
        sha256: (text) => createHash('sha256').update(text).digest('hex'),
      }),
      endpoint: createEndpoint({
        api: composeApi({
          items,
          authenticator: simulationAuthenticator,
          clock,
          random: source,
          pause,
          log,
          policy: process.policy,
          hash: (text) => createHash('sha256').update(text).digest('hex'),
          readYaml,
          gzip,
        }),
        heartbeat: serveHeartbeat({ items, authenticator: simulationAuthenticator, clock, random: source, log }),
        clock,
        seed,
      }),
    };
  }

  functions = lambdaFunctions({ time, plan, fraction: random('processes'), policy: asPlanted(policy), compose });
  const zoneOfCut = new Map<number, string>();
  const cutRandom = random('cut');
  const cutZone = (): string | undefined => {
    const cut = plan.last('zoneCut');
    if (cut === undefined || time.nowMs() >= cut.untilMs) return undefined;
    const known = zoneOfCut.get(cut.fromMs) ?? `zone-${Math.floor(cutRandom() * zones)}`;
    zoneOfCut.set(cut.fromMs, known);
    return known;
  };
  const send: Send = faultyNetwork({ functions, time, plan, fraction: network, cutZone });
  const hasLiars = plan.has('lyingClocks');
  const liesOf = (name: string): boolean => hasLiars && isLiar(seed, name);
  const story = tellStory({
    clockOf: (name) =>
      liesOf(name)
        ? lyingClock({
            seed,
            name,
            startMs: START_MS,
            mode: options.clocks ?? 'any',
            onLie: () => plan.count('lyingClocks'),
          })
        : undefined,
    taintsOf: (name) =>
      liesOf(name) && parts.includes('taints') && hashOf(`${seed} taint of ${name}`) % 4 === 0 ? [BY_MACHINE] : [],
    nodes,
    zones,
    beatEveryMs: policy.beatIntervalSeconds * 1_000,
    time,
    plan,
    fraction: random('story'),
    send,
    view,
    cloud,
    cutZone,
    tell,
    onAcknowledged: (write) => writes.onAcknowledged(write),
    onConflict: () => coverage.hit('write:conflict'),
  });
  const streams = faultyStreams({
    functions,
    time,
    plan,
    fraction: random('streams'),
    onFault,
    mayDrop: () => poisonedSinceMs !== undefined,
  });
  faultyTicks({
    functions,
    time,
    plan,
    fraction: random('ticks'),
    policy,
    startMs: START_MS,
    onFault,
    onReport: (report) => {
      coverage.onReport(report);
      const isUndisturbed = othersWroteAtMs < report.beganAtMs && report.kind === 'ran';
      mayDecideAgain = report.name === 'node-monitor' && isUndisturbed;
    },
  });
  faultyInstanceEvents({ cloud, functions, time, plan, onFault });
  if (parts.includes('watches')) {
    watchFunctions = watchWorld({
      law: watches,
      recent,
      time,
      plan,
      policy,
      random,
      storeOf,
      planted,
      logOf,
      hit: coverage.hit,
      tell,
      onFault,
    });
  }
  if (policy.clusterCIDRs.length > 0) {
    givePodCidrs({ policy, time, fraction: random('people and pod cidrs'), send, view, tell });
  }
  if (plan.has('poison')) poison = startPoison();
  if (parts.includes('taints')) {
    taintByHand({ time, fraction: random('people and taints'), send, view, tell });
  }
  if (parts.includes('volumes')) {
    runVolumes({ time, fraction: random('volumes'), send, view, cloud, machine: story.machine, tell });
  }
  runEpisodes();

  function startPoison(): Poison {
    const fraction = random('poison');
    const uuid = (): string => seededUuid(fraction);
    const objects = clusterObjects({ items: tables, clock: time, random: { fraction, uuid } });
    return poisonMachines({
      time,
      fraction,
      uuid,
      send,
      view,
      isPoisoned,
      zoneOf: (name) => story.machine(name)?.zone,
      commit: (commit) => {
        writer = { name: 'an older version', who: 'an older version' };
        return objects.commit(commit);
      },
      crash: story.crash,
      tell,
      onPoison: () => {
        plan.count('poison');
        poisonedSinceMs ??= time.nowMs();
      },
      onAnswer: ({ method, path }, { status, body }) => {
        if (status < 500 || context.calmSinceMs() === undefined || poison!.throttled.size > 0) return;
        const message = `${method} ${path} of a bad object answered ${status}: ${JSON.stringify(body)}`;
        fail({ law: 'calm', subjects: [], message });
      },
    });
  }

  /** Faults that are something done, and not something that befalls what is done. */
  function runEpisodes(): void {
    const shapeOf = random('episodes');
    for (const name of FAULT_NAMES) {
      for (const { fromMs, untilMs } of plan.episodes(name)) {
        time.after(fromMs - START_MS, () => tell('', `${name} begins`));
        time.after(untilMs - START_MS, () => tell('', `${name} ends`));
      }
    }
    for (const { fromMs, untilMs } of plan.episodes('restart')) {
      for (const atMs of [fromMs, (fromMs + untilMs) / 2]) {
        time.after(atMs - START_MS, () => {
          plan.count('restart');
          functions.restart();
          watchFunctions?.restart();
        });
      }
    }
    for (const { fromMs } of plan.episodes('clockJump')) {
      time.after(fromMs - START_MS, () => {
        plan.count('clockJump');
        functions.stepOneClock();
        watchFunctions?.stepOneClock();
        if (shapeOf() < 0.5) return;
        const toMs = Math.round((2 * shapeOf() - 1) * 30_000);
        jumps.push({ atMs: time.nowMs(), byMs: toMs - functions.clockAheadMs });
        functions.clockAheadMs = toMs;
        if (watchFunctions !== undefined) watchFunctions.clockAheadMs = toMs;
        tell('', `all clocks are ${toMs} ms ahead`);
      });
    }
    for (const { fromMs, untilMs } of plan.episodes('policyRoll')) {
      time.after(fromMs - START_MS, () => {
        plan.count('policyRoll');
        replaced.push({
          policy: realPolicies.get(functions.policy) ?? functions.policy,
          untilMs: untilMs + ROLLED_AFTER_MS,
        });
        // Periods and gates are the schedule's and stay; what is judged by may change.
        const { nodeMonitorPeriodSeconds: _, ...next } = policyOf(shapeOf);
        functions.policy = asPlanted({
          ...policy,
          ...next,
          ...options.policy,
          nodeMonitorPeriodSeconds: policy.nodeMonitorPeriodSeconds,
          nodeMonitorGracePeriodSeconds: policy.nodeMonitorGracePeriodSeconds + 10 * Math.floor(shapeOf() * 3),
        });
        tell('', 'a new policy is deployed');
      });
      time.after(untilMs - START_MS, () => {
        functions.restart();
        rolledUntilMs = time.nowMs() + ROLLED_AFTER_MS;
      });
    }
  }

  let lookedAtMs = START_MS;
  let expiredAtMs = START_MS;

  function learn(): void {
    const by = writer!;
    writer = undefined;
    const changes = recent.take(time.nowMs());
    if (changes.length === 0) return;
    if (by.name !== 'node-monitor' && changes.some(({ key }) => isReadByNodeMonitor(key)))
      othersWroteAtMs = time.nowMs();
    view.refresh();
    watches.learn(changes);
    cidrs.learn(changes, by);
    if (parts.includes('volumes')) volumes.learn(changes);
    streams.feed(changes);
    for (const happened of truth.learn(changes, by)) {
      coverage.onHappened(happened, by);
      const line = lineOf(happened, by);
      if (line !== undefined) tell(line.subject, line.text);
      if (line !== undefined && by.who === '' && DECIDED.has(happened.kind)) {
        options.onDecision?.({ atMs: time.nowMs() - START_MS, ...line });
        if ('node' in happened && liesOf(happened.node.name)) coverage.hit(`clock:${happened.kind}`);
        if ('pod' in happened && liesOf(happened.pod.nodeName)) coverage.hit('clock:podEnds');
        const name = 'node' in happened ? happened.node.name : 'pod' in happened ? happened.pod.nodeName : '';
        if (poisonedSinceMs !== undefined && !isPoisoned(name)) coverage.hit(`poison:${happened.kind}`);
      }
      for (const law of laws) law.onHappened?.(happened, by);
    }
    for (const table of ['health', 'objects', 'control'] as const) {
      tables.forgetChanges(table, Number.MAX_SAFE_INTEGER);
    }
  }

  async function decideAgain(): Promise<void> {
    const [only, ...others] = functions.policies();
    if (only === undefined || others.length > 0) return;
    const broken = await decidesNothingTwice(tables, only, lookRandom, coverage.hit, isPoisoned);
    if (broken !== undefined) fail(broken);
  }

  await story.begin();
  await time.run(endMs, () => {
    const now = time.nowMs();
    if (writer !== undefined) learn();
    if (now - lookedAtMs >= LOOK_EVERY_MS) {
      lookedAtMs = now;
      for (const law of laws) law.onMoment?.();
      if (now - expiredAtMs >= EXPIRE_EVERY_MS) {
        expiredAtMs = now;
        tables.expire('objects', now / 1_000);
      }
    }
    if (mayDecideAgain) {
      mayDecideAgain = false;
      if (failure === undefined && context.calmSinceMs() !== undefined) {
        return decideAgain().then(() => failure !== undefined);
      }
    }
    return failure !== undefined;
  });

  return {
    seed,
    nodes,
    zones,
    policy: chosen,
    parts,
    nodeHours: (nodes * (time.nowMs() - START_MS)) / 3_600_000,
    steps: time.steps(),
    faults: plan.counts,
    marks: coverage.hits,
    failure,
  };
}

/** What follows from silence and taints. */
const DECIDED: ReadonlySet<Happened['kind']> = new Set(['ready', 'tainted', 'untainted', 'podEnds', 'nodeGone']);

/** What its decisions rest on: digests of nodes, zones, queue. Its own probe is no node. */
const isReadByNodeMonitor = ({ table, pk, sk }: ItemKey): boolean =>
  (table === 'health' && sk !== PROBE_LEASE) || (table === 'control' && pk === 'fleet');

/** As node-monitor's, without a wire: a beat for a Lease that is nobody's. */
function ownProbe(send: Send, clock: Clock, sleep: (milliseconds: number) => Promise<void>): Probe {
  const collection = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
  const sender = { isGone: () => false };
  const ask = async (request: Omit<EndpointRequest, 'who'>): Promise<number> => {
    const patience = sleep(2_000).then(() => 0);
    return Promise.race([patience, send({ who: PROBE, ...request }, sender).then(({ status }) => status)]);
  };
  return {
    async beat() {
      const spec = { renewTime: new Date(clock.nowMs()).toISOString().replace('Z', '000Z') };
      const path = `${collection}/${PROBE_LEASE}`;
      const status = await ask({
        method: 'PATCH',
        path,
        body: { spec },
        contentType: 'application/merge-patch+json',
      });
      if (status === 200) return { kind: 'accepted' };
      if (status !== 404) return { kind: 'failed', reason: `answered ${status}` };
      const created = await ask({
        method: 'POST',
        path: collection,
        body: {
          apiVersion: 'coordination.k8s.io/v1',
          kind: 'Lease',
          metadata: { name: PROBE_LEASE, namespace: 'kube-node-lease' },
          spec: { holderIdentity: PROBE_LEASE, leaseDurationSeconds: 40, ...spec },
        },
      });
      return created === 201 || created === 409
        ? { kind: 'accepted' }
        : { kind: 'failed', reason: `creating the probe's lease answered ${created}` };
    },
  };
}

function lineOf(happened: Happened, by: Writer): { readonly subject: string; readonly text: string } | undefined {
  const who = by.who === '' ? by.name : `${by.name} for ${by.who}`;
  switch (happened.kind) {
    case 'heard':
      return { subject: happened.node.name, text: HEARD };
    case 'nodeCreated':
    case 'nodeGone':
      return {
        subject: happened.node.name,
        text: `${happened.kind === 'nodeGone' ? 'is deleted' : 'is created'} by ${who}`,
      };
    case 'ready':
      return { subject: happened.node.name, text: `Ready ${happened.from} > ${happened.to} by ${who}` };
    case 'tainted':
    case 'untainted':
      return { subject: happened.node.name, text: `${happened.kind} ${happened.key}:NoExecute by ${who}` };
    case 'podEnds':
      return {
        subject: happened.pod.nodeName,
        text: `pod ${happened.pod.path} ${happened.isGone ? 'is gone' : 'is being deleted'} by ${who}`,
      };
    case 'control': {
      const { key, newImage } = happened.change;
      if (key.pk !== 'fleet') return undefined;
      if (key.sk.startsWith('zone#'))
        return { subject: key.sk.slice('zone#'.length), text: JSON.stringify(newImage ?? 'gone') };
      if (key.sk.startsWith('queue#')) {
        return {
          subject: key.sk.split('#')[2]!,
          text: newImage === undefined ? `leaves the queue by ${who}` : 'waits in the queue',
        };
      }
      const { fence, at, doneAt, holding, total } = newImage ?? {};
      return { subject: 'state', text: JSON.stringify({ fence, at, doneAt, holding, total }) };
    }
    default:
      return undefined;
  }
}

/** The last lines about some subjects, and those about nobody. */
function timelineOf(
  lines: readonly { readonly atMs: number; readonly subject: string; readonly text: string }[],
  subjects: readonly string[],
  nowMs: number,
): string[] {
  const wanted = lines.filter(({ subject, atMs }) => {
    if (subject === 'state') return atMs > nowMs - 60_000;
    return subject === '' || subjects.includes(subject);
  });
  // Of beats in a row the last one tells enough.
  const told = wanted.filter(({ subject, text }, index) => {
    const next = wanted.slice(index + 1).find((later) => later.subject === subject);
    return text !== HEARD || next?.text !== HEARD;
  });
  return told.slice(-LINES_TOLD).map(({ atMs, subject, text }) => {
    const at = ((atMs - START_MS) / 1_000).toFixed(3);
    return `${at.padStart(11)} s  ${subject === '' ? '*' : subject}  ${text}`;
  });
}

/** Everything that acts in a run: functions, network, machines, streams, ticks, EC2, people, bad objects, faults. */

import type { PermitRequest } from '../shared/agents/site-permits.ts';
import { siteHubOf } from '../shared/kinds/pods/site-permit.ts';
import { clusterObjects } from '../shared/kinds/resources.ts';
import type { KubePod } from '../shared/kinds/types.ts';
import { nodeNameOf } from './cluster-view.ts';
import { faultyInstanceEvents } from './faults/faulty-cloud.ts';
import { faultyNetwork, type Send } from './faults/faulty-network.ts';
import { faultyParts } from './faults/faulty-parts.ts';
import { type FaultyStreams, faultyStreams } from './faults/faulty-streams.ts';
import { faultyTicks } from './faults/faulty-ticks.ts';
import { type LieKind, lyingClock } from './faults/lying-clocks.ts';
import { lambdaFunctions } from './faults/processes.ts';
import { beGreedy, environmentsDuringGreed } from './greedy-identity.ts';
import { type DoorUse, doorUseOf } from './heartbeat-doors.ts';
import { hubWorld } from './hub-world.ts';
import type { TrueMachine } from './laws/law.ts';
import { type OfflineMachines, offlineMachines, TROUBLES, type TroubleName } from './offline-machines.ts';
import { usesWorkloads } from './parts.ts';
import { givePodCidrs } from './people-cidrs.ts';
import { runOnce } from './people-offline-stop.ts';
import { wantPods } from './people-pods.ts';
import { changeProfiles, linkLabels } from './people-profiles.ts';
import { promiseSilences } from './people-silence.ts';
import { BY_MACHINE, taintByHand } from './people-taints.ts';
import { useWorkloads } from './people-workloads.ts';
import { createPoison, type Poison } from './poison.ts';
import { type SiteRelays, siteRelays } from './relays.ts';
import { runEpisodes } from './run-episodes.ts';
import type { PodObserver } from './running-pods.ts';
import { hashOf, oneOf, seededUuid } from './seeded-random.ts';
import type { SimChecks } from './sim-checks.ts';
import { simPrograms } from './sim-programs.ts';
import { type SimSetup, START_MS } from './sim-setup.ts';
import { SITE_TROUBLES, type SiteTrouble, type SiteWitnesses, siteWitnesses } from './site-witnesses.ts';
import { createStory, type Story } from './story.ts';
import { runVolumes } from './volumes.ts';
import { watchWorld } from './watch-world.ts';

export interface World {
  readonly story: Story;
  readonly streams: FaultyStreams;
}

export function startWorld(setup: SimSetup, checks: SimChecks): World {
  const { time, plan, policy, random, view, cloud, parts } = setup;
  const { state, coverage, context, onFault } = checks;
  const log = checks.log.add;
  const network = random('network');
  const ticks = faultyTicks({
    time,
    plan,
    fraction: random('ticks'),
    policy,
    startMs: START_MS,
    onFault,
    onSent: checks.ticks.onSent,
    onReport: (report) => {
      coverage.onReport(report);
      if (report.name === 'node-monitor' && report.kind === 'ran') state.finishedTickBeganAtMs = report.beganAtMs;
    },
  });
  const markParts = faultyParts({
    time,
    plan: plan.apart('mark parts'),
    fraction: random('mark parts'),
    onFault,
    onPart: (outcome) => coverage.hit(`part:${outcome}`),
  });
  const programs = simPrograms(setup, checks, {
    network,
    ticks,
    markParts,
    send: (request, sender) => send(request, sender),
  });
  const functions = lambdaFunctions({
    time,
    plan,
    fraction: random('processes'),
    policy: checks.versions.asPlanted(policy),
    compose: programs.compose,
    environmentsMax: environmentsDuringGreed(plan),
  });
  state.functions = functions;
  const cutZone = zoneCuts(setup);
  const send: Send = faultyNetwork({
    ...{ functions, time, plan, fraction: network, cutZone },
    onTurn: checks.shares.onTurn,
    onAnswer: checks.shares.onAnswer,
  });
  beGreedy(setup, functions, checks.shares.onAnswer);
  const story = startStory(setup, checks, { send, cutZone });
  state.story = story;
  const streams = faultyStreams({
    functions,
    time,
    plan,
    fraction: random('streams'),
    onFault,
    mayDrop: () => state.poisonedSinceMs !== undefined,
    ...(usesWorkloads(parts) && { workloads: { plan: plan.apart('workloads'), fraction: random('workloads') } }),
  });
  ticks.start(functions);
  markParts.start(functions);
  faultyInstanceEvents({ cloud, functions, time, plan, onFault });
  if (parts.includes('watches')) {
    const { recent } = setup;
    const { storeOf, planted, logOf } = programs;
    const { watches: law } = checks;
    const { hit } = coverage;
    state.watchFunctions = watchWorld({
      ...{ law, recent, time, plan, policy, random, storeOf, planted, logOf, hit, log, onFault },
    });
  }
  if (parts.includes('hub')) {
    const { recent, endMs, options } = setup;
    const { storeOf, planted, logOf } = programs;
    const { hubs: law } = checks;
    const plant = options.plant?.hub ?? {};
    const onFailed = (message: string): void => {
      if (context.calmSinceMs() === undefined || state.poisonedSinceMs !== undefined) return;
      checks.fail({ law: 'S3', subjects: [], message: `a request failed in calm: ${message}` });
    };
    const reschedules = parts.includes('reschedule');
    const accidents = random('power cuts');
    const world = hubWorld({
      ...{
        law,
        recent,
        time,
        plan,
        policy,
        endMs,
        random,
        storeOf,
        planted,
        plant,
        logOf,
        log,
        onFault,
        onFailed,
        view,
        reschedules,
        hit: coverage.hit,
        movableOn: () => movableOn(setup),
        loseCopies: () => {
          for (const name of state.offlineMachines?.withCopies() ?? [])
            state.offlineMachines?.cutFromHub(name, COPIES_LOST_MS);
        },
        loseMachines: () => loseMachines(setup, checks, accidents),
        crash: (nodeName, offMs) => story.crash(nodeName, offMs),
      },
    });
    state.hubFunctions = world.functions;
    if (reschedules) state.permits = world.permits;
  }
  if (policy.clusterCIDRs.length > 0) {
    givePodCidrs({ policy, time, fraction: random('people and pod cidrs'), send, view, log });
  }
  if (plan.has('poison')) state.poison = startPoison(setup, checks, { send, story });
  if (parts.includes('profiles')) changeProfiles({ time, fraction: random('people and profiles'), send, view, log });
  if (parts.includes('plannedSilence')) {
    const crash = (name: string, offMs: number): void => story.crash(name, offMs);
    promiseSilences({ time, fraction: random('people and silence'), send, view, log, crash });
  }
  if (parts.includes('taints')) taintByHand({ time, fraction: random('people and taints'), send, view, log });
  if (parts.includes('scheduling')) wantPods({ time, fraction: random('people and pods'), send, view });
  if (parts.includes('workloads')) useWorkloads({ time, fraction: random('people and workloads'), send, view, log });
  if (parts.includes('offlineStop')) {
    const people = { time, fraction: random('people and once'), send, view, log };
    runOnce(people, { isMovable: parts.includes('reschedule') });
  }
  if (parts.includes('volumes')) {
    runVolumes({ time, fraction: random('volumes'), send, view, cloud, machine: (name) => story.machine(name), log });
  }
  runEpisodes(setup, checks);
  return { story, streams };
}

/** Longer than a pod may run for ten minutes without a permit, and is moved. Milliseconds. */
const LOST_MS = { least: 840_000, most: 1_140_000 } as const;

/** While the machine of the original asks the next process of the hub. Milliseconds. */
const COPIES_LOST_MS = 480_000;

/** Machines with pods that a hub may move. */
function movableOn({ view }: SimSetup): readonly string[] {
  const isMovable = (pod: KubePod): boolean =>
    siteHubOf(pod) !== undefined && pod.metadata.ownerReferences?.[0]?.kind === 'ReplicaSet';
  return [...new Set([...view.pods.values()].filter(isMovable).map(nodeNameOf))];
}

/** Of these machines one is switched off, and another one cannot reach the hub. */
function loseMachines(setup: SimSetup, { state }: SimChecks, fraction: () => number): void {
  const names = movableOn(setup).filter((name) => state.story!.machines.get(name)?.isOn === true);
  const off = oneOf(names, fraction);
  const cutOff = oneOf(
    names.filter((name) => name !== off),
    fraction,
  );
  const lastsMs = (): number => LOST_MS.least + fraction() * (LOST_MS.most - LOST_MS.least);
  if (off !== undefined) state.story!.crash(off, lastsMs());
  if (cutOff !== undefined) state.offlineMachines?.cutFromHub(cutOff, lastsMs());
}

/** The zone that is cut off at this moment, chosen once per episode. */
function zoneCuts({ plan, time, random, zones }: SimSetup): () => string | undefined {
  const zoneOfCut = new Map<number, string>();
  const fraction = random('cut');
  return () => {
    const cut = plan.last('zoneCut');
    if (cut === undefined || time.nowMs() >= cut.untilMs) return undefined;
    const zone = zoneOfCut.get(cut.fromMs) ?? `zone-${Math.floor(fraction() * zones)}`;
    zoneOfCut.set(cut.fromMs, zone);
    return zone;
  };
}

function startStory(
  setup: SimSetup,
  checks: SimChecks,
  { send, cutZone }: { readonly send: Send; readonly cutZone: () => string | undefined },
): Story {
  const { log, writes, coverage } = checks;
  const { seed, options, time, plan, parts, nodes, zones, policy, random, view, cloud, hasWrongClock } = setup;
  const mode = options.clocks ?? 'any';
  const doorOf = (name: string): DoorUse => (parts.includes('heartbeatUrl') ? doorUseOf(seed, name) : 'api');
  const onLie = (kind: LieKind): void => {
    plan.count('lyingClocks');
    coverage.hit(`lie:${kind}`);
  };
  const isTainting = (name: string): boolean =>
    hasWrongClock(name) && parts.includes('taints') && hashOf(`${seed} taint of ${name}`) % 4 === 0;
  return createStory({
    clockOf: (name) => (hasWrongClock(name) ? lyingClock({ seed, name, startMs: START_MS, mode, onLie }) : undefined),
    taintsOf: (name) => (isTainting(name) ? [BY_MACHINE] : []),
    labelsOf: (name) => (parts.includes('profiles') ? linkLabels(seed, name) : {}),
    doorOf,
    hasAccidents: options.troubles?.length !== 0,
    running: parts.includes('offlineStop') ? startOfflineMachines(setup, checks) : undefined,
    witnesses: parts.includes('witnesses') ? startWitnesses(setup, checks) : undefined,
    relays: parts.includes('relays') ? startRelays(setup, checks, { send, doorOf }) : undefined,
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
    log: log.add,
    onAcknowledged: (write) => writes.onAcknowledged(write),
    onConflict: () => coverage.hit('write:conflict'),
  });
}

function startOfflineMachines(
  { seed, time, view, random, options, parts }: SimSetup,
  { state, log, offlineStop, returns }: SimChecks,
): OfflineMachines {
  state.offlineMachines = offlineMachines({
    ...{ seed, time, view, log: log.add, observer: observedByAll([offlineStop, returns]) },
    rules: options.plant?.offlineRules,
    ...(parts.includes('reschedule') && {
      askHub: async (nodeName: string, request: PermitRequest) => state.permits?.(nodeName, request),
    }),
    fraction: random('offline machines'),
    troubles: options.troubles ?? (Object.keys(TROUBLES) as readonly TroubleName[]),
    crash: (name, offMs) => state.story!.crash(name, offMs),
    onCut: (name, untilMs) => state.story!.linkFails(name, untilMs),
    onHubCut: (name, untilMs) => returns?.onHubCut(name, untilMs),
    onClockStep: (name) => offlineStop.onClockStep(name),
  });
  return state.offlineMachines;
}

/** Absent ones observe nothing. */
function observedByAll(some: readonly (PodObserver | undefined)[]): PodObserver {
  const observers = some.filter((each) => each !== undefined);
  return {
    onStart(...started) {
      for (const observer of observers) observer.onStart(...started);
    },
    onStopping(...stopping) {
      for (const observer of observers) observer.onStopping(...stopping);
    },
    onStopped(...stopped) {
      for (const observer of observers) observer.onStopped(...stopped);
    },
  };
}

function startWitnesses({ time, random, options }: SimSetup, { state, log }: SimChecks): SiteWitnesses {
  state.witnesses = siteWitnesses({
    time,
    fraction: random('witnesses'),
    troubles: options.siteTroubles ?? (Object.keys(SITE_TROUBLES) as readonly SiteTrouble[]),
    machines: () => state.story?.machines ?? NO_MACHINES,
    log: log.add,
  });
  return state.witnesses;
}

const NO_MACHINES: ReadonlyMap<string, TrueMachine> = new Map();

function startRelays(
  { seed, zones, time, plan, options, isPoisoned }: SimSetup,
  { state, coverage, fail }: SimChecks,
  { send, doorOf }: { readonly send: Send; readonly doorOf: (name: string) => DoorUse },
): SiteRelays {
  return siteRelays({
    ...{ seed, zones, time, send, doorOf },
    plan: plan.apart('relays'),
    machines: () => state.story?.machines ?? NO_MACHINES,
    onMark: (mark, node) => {
      coverage.hit(`relay:${mark}`);
      if (mark !== 'mistrusted' || isPoisoned(node)) return;
      const message = `${node} does not use its relay for an hour, although no relay acknowledged what it dropped`;
      fail({ law: 'relays', subjects: [node], message });
    },
    route: options.plant?.relayRoute,
  });
}

function startPoison(
  setup: SimSetup,
  { state, log, context, fail }: SimChecks,
  { send, story }: { readonly send: Send; readonly story: Story },
): Poison {
  const { time, plan, tables, view, isPoisoned } = setup;
  const fraction = setup.random('poison');
  const uuid = (): string => seededUuid(fraction);
  const objects = clusterObjects({ items: tables, clock: time, random: { fraction, uuid } });
  return createPoison({
    time,
    fraction,
    uuid,
    send,
    view,
    isPoisoned,
    zoneOf: (name) => story.machine(name)?.zone,
    commit: (commit) => {
      state.writer = { name: 'an older version', who: 'an older version' };
      return objects.commit(commit);
    },
    crash: (name, offMs) => story.crash(name, offMs),
    log: log.add,
    onPoison: () => {
      plan.count('poison');
      state.poisonedSinceMs ??= time.nowMs();
    },
    onAnswer: ({ method, path }, { status, body }, sentAtMs) => {
      if (status < 500 || context.calmSinceMs() === undefined) return;
      // The throttle may have ended while the API worked on the answer.
      if (status === 503 && state.poison!.hasThrottledSince(sentAtMs)) return;
      const message = `${method} ${path} of a bad object answered ${status}: ${JSON.stringify(body)}`;
      fail({ law: 'calm', subjects: [], message });
    },
  });
}

/** The laws of a run with the state that they are checked over. */
import { policyOf, profileNames } from '../shared/fleet/nodes/node-profile.ts';
import type { Policy } from '../shared/fleet/policy.ts';
import { StoreFault } from '../shared/store/item-store.ts';
import { type Coverage, createCoverage } from './coverage.ts';
import type { Functions } from './faults/processes.ts';
import type { ClusterApi } from './hub-link.ts';
import type { AskForPermits } from './hub-world.ts';
import { badObjectsAffectOnlyThemselves } from './laws/bad-objects.ts';
import { bindingsFit } from './laws/bindings.ts';
import { flappingFollowsMarks } from './laws/flapping.ts';
import { closedGateHoldsActs } from './laws/gate-acts.ts';
import { type HubLaw, hubsFollow } from './laws/hub.ts';
import type { Broken, Law, LawContext } from './laws/law.ts';
import { nodesOfLiveInstancesStay } from './laws/machines.ts';
import { type OfflineStopLaw, offlineStopHolds } from './laws/offline-stop.ts';
import { ownersKeepDependents } from './laws/owners.ts';
import { podCidrsAreUnique } from './laws/pod-cidrs.ts';
import { podCountsAreKept } from './laws/pod-counts.ts';
import { podsHaveTheirTime } from './laws/pods.ts';
import { profilesAreKept } from './laws/profiles.ts';
import { darkIsNobodysFault, zonesKeepTheirRate } from './laws/rates.ts';
import { relaysOnlyDelay } from './laws/relays.ts';
import { identitiesKeepTheirShare, type SharesLaw } from './laws/shares.ts';
import { beatingIsNotMarked, outageIsForgiven, silentIsMarked, steadyGapMs } from './laws/silence.ts';
import { type SiteReturnsLaw, siteReturns } from './laws/site-returns.ts';
import { chainIsOne, type TicksLaw } from './laws/ticks.ts';
import { createTruth, type Truth, type Writer } from './laws/truth.ts';
import { volumesAreKept } from './laws/volumes.ts';
import { watchersReceiveEveryChange } from './laws/watches.ts';
import { marksHaveWitnesses, type WitnessesLaw } from './laws/witnesses.ts';
import { workloadsProgress } from './laws/workload-progress.ts';
import { createWorkloadWorld } from './laws/workload-world.ts';
import { writesAreKept } from './laws/writes.ts';
import type { OfflineMachines } from './offline-machines.ts';
import { usesWorkloads } from './parts.ts';
import type { Poison } from './poison.ts';
import { type PolicyVersions, policyVersions } from './policy-versions.ts';
import type { TimedChange } from './recent-changes.ts';
import { type SimLog, simLog } from './sim-log.ts';
import type { SimFailure } from './sim-options.ts';
import { type SimSetup, START_MS } from './sim-setup.ts';
import type { SiteWitnesses } from './site-witnesses.ts';
import type { Story } from './story.ts';

const SKEW_MS = 2_000;
/** Effects of a fault may arrive for this long after it ended. */
const CALM_AFTER_MS = 10_000;

/** What changes during a run. */
export interface SimState {
  failure: SimFailure | undefined;
  /** Since when there are bad objects. */
  poisonedSinceMs: number | undefined;
  poison: Poison | undefined;
  /** Who wrote in this step. */
  writer: Writer | undefined;
  /** When the tick began that node-monitor finished in this step. */
  finishedTickBeganAtMs: number | undefined;
  /** When another writer changed what node-monitor reads, as of the steps that are over. */
  othersWroteAtMs: number;
  /** Steps of all clocks together. */
  readonly clockSteps: { readonly atMs: number; readonly byMs: number }[];
  /** Set before the first step. */
  functions: Functions | undefined;
  watchFunctions: Functions<unknown> | undefined;
  hubFunctions: Functions<ClusterApi> | undefined;
  /** With the part `reschedule`. */
  permits: AskForPermits | undefined;
  offlineMachines: OfflineMachines | undefined;
  story: Story | undefined;
  /** With the part `witnesses`. */
  witnesses: SiteWitnesses | undefined;
}

export interface SimChecks {
  readonly state: SimState;
  readonly log: SimLog;
  readonly versions: PolicyVersions;
  readonly truth: Truth;
  readonly context: LawContext;
  readonly coverage: Coverage;
  /** All of them. */
  readonly laws: readonly Law[];
  readonly writes: ReturnType<typeof writesAreKept>;
  readonly watches: ReturnType<typeof watchersReceiveEveryChange>;
  readonly cidrs: ReturnType<typeof podCidrsAreUnique>;
  readonly volumes: ReturnType<typeof volumesAreKept>;
  readonly bindings: ReturnType<typeof bindingsFit>;
  readonly ticks: TicksLaw;
  readonly shares: SharesLaw;
  readonly offlineStop: OfflineStopLaw;
  readonly hubs: HubLaw;
  /** With the part `reschedule`. */
  readonly returns: SiteReturnsLaw | undefined;
  /** Shows what one step wrote to the laws of workloads. */
  learnWorkloads(changes: readonly TimedChange[], by: Writer): void;
  fail(broken: Broken): void;
  /** An invocation failed. */
  onFault(name: string, faults: readonly unknown[]): void;
}

export function createChecks(setup: SimSetup): SimChecks {
  const { time, policy, cloud, options, parts } = setup;
  const state: SimState = {
    failure: undefined,
    poisonedSinceMs: undefined,
    poison: undefined,
    writer: undefined,
    finishedTickBeganAtMs: undefined,
    othersWroteAtMs: START_MS,
    clockSteps: [],
    functions: undefined,
    watchFunctions: undefined,
    hubFunctions: undefined,
    permits: undefined,
    offlineMachines: undefined,
    story: undefined,
    witnesses: undefined,
  };
  const log = simLog(time, START_MS);
  const versions = policyVersions({ nowMs: time.nowMs, plant: options.plant?.policy });
  const fail = (broken: Broken): void => {
    state.failure ??= failureOf(broken, setup, state, log);
  };
  const truth = createTruth(() => steadyGapMs(context));
  const context: LawContext = lawContext({
    ...{ setup, state, truth, versions, fail },
    regularTicksSinceMs: () => ticks.regularSinceMs(),
    isWitnessed: (name) => witnesses?.isWitnessed(name) ?? false,
  });
  const onMarked = (name: string, isWitnessed: boolean): void => {
    const answeredAtMs = state.witnesses?.answeredAtMs(name);
    options.onMarked?.({
      isWitnessed,
      wasOn: state.story!.machine(name)?.isOn === true,
      sinceAnswerMs: answeredAtMs === undefined ? undefined : time.nowMs() - answeredAtMs,
    });
  };
  const witnesses: WitnessesLaw | undefined = parts.includes('witnesses')
    ? marksHaveWitnesses(context, onMarked)
    : undefined;
  const ticks = chainIsOne(context, START_MS);
  const coverage = createCoverage((uid) =>
    [...truth.pods.values()].some((pod) => pod.uid === uid && !pod.isTerminating),
  );
  const writes = writesAreKept(context);
  const watches = watchersReceiveEveryChange(context);
  const cidrs = podCidrsAreUnique(context, policy, coverage.hit);
  const volumes = volumesAreKept(context, cloud, coverage.hit);
  const bindings = bindingsFit(context, coverage.hit);
  const shares = identitiesKeepTheirShare(context, coverage.hit);
  const workloads = createWorkloadWorld();
  const podCounts = podCountsAreKept(context, workloads, coverage.hit);
  const gateActs = closedGateHoldsActs(context, workloads, coverage.hit);
  const owners = ownersKeepDependents(context, workloads, coverage.hit);
  const progress = workloadsProgress(context, workloads, coverage.hit);
  const offlineStop = offlineStopHolds(context, workloads, coverage.hit);
  const hubs = hubsFollow(context, coverage.hit);
  const returns = parts.includes('reschedule')
    ? siteReturns(context, workloads, () => hubs.firstCalmSinceMs(), coverage.hit)
    : undefined;
  const laws: readonly Law[] = [
    // First: the others leave its marks to it.
    ...(witnesses === undefined ? [] : [witnesses]),
    beatingIsNotMarked(context),
    silentIsMarked(context),
    zonesKeepTheirRate(context),
    darkIsNobodysFault(context),
    outageIsForgiven(context),
    profilesAreKept(context),
    flappingFollowsMarks(context, coverage.hit),
    ...(parts.includes('relays') ? [relaysOnlyDelay(context)] : []),
    nodesOfLiveInstancesStay(context),
    podsHaveTheirTime(context),
    badObjectsAffectOnlyThemselves(context),
    writes,
    watches,
    cidrs,
    volumes,
    bindings,
    ticks,
    shares,
    ...(parts.includes('offlineStop') ? [offlineStop] : []),
    ...(parts.includes('hub') ? [hubs] : []),
    ...(returns === undefined ? [] : [returns]),
    ...(usesWorkloads(parts) ? [podCounts, gateActs, owners, progress] : []),
  ];

  function onFault(name: string, faults: readonly unknown[]): void {
    for (const fault of faults.flatMap((each) => (each instanceof AggregateError ? [each, ...each.errors] : [each]))) {
      const text = fault instanceof Error ? `${fault.name} ${fault.message}` : String(fault);
      log.add('', `${name} failed: ${text}`);
      // Refused and lost calls are injected. Any other error is a bug, at any time.
      const isInjected = fault instanceof StoreFault || fault instanceof AggregateError;
      // A bad object may fail its own calls. What it does to others is L12.
      if (state.poisonedSinceMs !== undefined) continue;
      if (!isInjected || context.calmSinceMs() !== undefined) {
        fail({ law: 'calm', subjects: [], message: `${name} failed without a fault: ${text}` });
      }
    }
  }

  return {
    state,
    log,
    versions,
    truth,
    context,
    coverage,
    laws,
    writes,
    watches,
    cidrs,
    volumes,
    bindings,
    ticks,
    shares,
    offlineStop,
    hubs,
    returns,
    learnWorkloads(changes, by) {
      const changed = workloads.apply(changes);
      if (changed.length === 0) return;
      offlineStop.learn(changed);
      podCounts.learn(changed, by);
      gateActs.learn(changed, by);
      owners.learn(changed, by);
      progress.learn(changed);
    },
    fail,
    onFault,
  };
}

/** A late effect is L12 while there are bad objects. */
function failureOf(broken: Broken, setup: SimSetup, state: SimState, log: SimLog): SimFailure {
  const isPoison = state.poisonedSinceMs !== undefined && broken.isLate === true;
  return {
    law: isPoison ? 'L12' : broken.law,
    subjects: broken.subjects,
    message: isPoison ? `${broken.message} (${broken.law}, while bad objects exist)` : broken.message,
    seed: setup.seed,
    step: setup.time.steps(),
    atMs: setup.time.nowMs() - START_MS,
    timeline: log.timelineOf(broken.subjects),
  };
}

/** Each policy with the times of each of its profiles. */
const ofProfiles = (policies: readonly Policy[]): readonly Policy[] =>
  policies.flatMap((policy) => profileNames(policy).map((name) => policyOf(policy, name)));

function lawContext(options: {
  readonly setup: SimSetup;
  readonly state: SimState;
  readonly truth: Truth;
  readonly versions: PolicyVersions;
  /** Since when node-monitor has ticked in every period; undefined while it does not. */
  readonly regularTicksSinceMs: () => number | undefined;
  readonly isWitnessed: (name: string) => boolean;
  readonly fail: (broken: Broken) => void;
}): LawContext {
  const { setup, state, truth, versions, regularTicksSinceMs, isWitnessed, fail } = options;
  const { time, plan, policy, isPoisoned } = setup;
  // What a process does with another policy is a later step. Laws ask for each node.
  let known = { step: -1, policies: [] as readonly Policy[] };
  const policies = (): readonly Policy[] => {
    const step = time.steps();
    if (known.step !== step) known = { step, policies: ofProfiles(versions.all(state.functions!.policies())) };
    return known.policies;
  };
  return {
    truth,
    plan,
    nowMs: time.nowMs,
    most: (of) => Math.max(...policies().map(of)),
    least: (of) => Math.min(...policies().map(of)),
    calmSinceMs() {
      const sinceMs = plan.calmSinceMs();
      const ticksMs = regularTicksSinceMs();
      if (sinceMs === undefined || ticksMs === undefined) return undefined;
      const fromMs = Math.max(sinceMs, START_MS, versions.settledAtMs(), ticksMs);
      return time.nowMs() - fromMs < CALM_AFTER_MS ? undefined : fromMs;
    },
    clockSlackMs(sinceMs, of) {
      const steps = state.clockSteps.reduce(
        (sum, { atMs, byMs }) => (atMs >= sinceMs - 60_000 ? sum + Math.abs(byMs) : sum),
        0,
      );
      return steps + (of !== 'steps' && plan.has('skew') ? SKEW_MS : 0);
    },
    machine: (name) => state.story!.machine(name),
    isWitnessed,
    isPoisoned,
    poisonSlackMs: () => (state.poisonedSinceMs === undefined ? 0 : policy.nodeMonitorPeriodSeconds * 1_000),
    fail,
  };
}

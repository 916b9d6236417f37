/** Every benchmark, in the order of `npm run bench`. */
import { advice } from './advice.ts';
import { agent } from './agent.ts';
import { api } from './api.ts';
import type { Benchmark } from './benchmark.ts';
import { bundles } from './bundles.ts';
import { crds } from './crds.ts';
import { detection } from './detection.ts';
import { elections } from './elections.ts';
import { fleet } from './fleet.ts';
import { greedyIdentity } from './greedy-identity.ts';
import { heartbeat } from './heartbeat.ts';
import { helm } from './helm.ts';
import { hub } from './hub.ts';
import { hubDay } from './hub-day.ts';
import { massFailure } from './mass-failure.ts';
import { page } from './page.ts';
import { relay } from './relay.ts';
import { scheduler } from './scheduler.ts';
import { serveSoak } from './serve-soak.ts';
import { serviceRules } from './service-rules.ts';
import { siteMarks } from './site-marks.ts';
import { soak } from './soak.ts';
import { store } from './store.ts';
import { storm } from './storm.ts';
import { tick } from './tick.ts';
import { walks } from './walks.ts';
import { watches } from './watches.ts';
import { witnesses } from './witnesses.ts';
import { workloads } from './workloads.ts';
import { writeUnits } from './write-units.ts';

export const BENCHMARKS: readonly Benchmark[] = [
  bundles,
  heartbeat,
  agent,
  serviceRules,
  relay,
  tick,
  fleet,
  elections,
  storm,
  greedyIdentity,
  soak,
  serveSoak,
  api,
  crds,
  detection,
  witnesses,
  siteMarks,
  massFailure,
  writeUnits,
  store,
  watches,
  hub,
  hubDay,
  walks,
  scheduler,
  workloads,
  advice,
  page,
  helm,
];

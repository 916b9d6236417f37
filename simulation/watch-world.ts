/** Watchers and the functions that serve them. They have random numbers of their own. */

import { composeApi } from '../functions/api/work.ts';
import { serveWatch } from '../functions/watch/work.ts';
import { inProcess } from '../server/system.ts';
import type { NodeKeys } from '../shared/access/node-keys.ts';
import type { WatchTicketVerifier } from '../shared/access/watch-tickets.ts';
import type { RandomSource } from '../shared/clock.ts';
import type { Policy } from '../shared/fleet/policy.ts';
import type { Log } from '../shared/observability/log.ts';
import type { ItemStore } from '../shared/store/item-store.ts';
import { simulationAuthenticator } from './access.ts';
import type { Mark } from './coverage.ts';
import type { FaultPlan } from './faults/catalogue.ts';
import { type Functions, lambdaFunctions, type Process } from './faults/processes.ts';
import { withStaleHeads } from './faults/stale-heads.ts';
import type { WatchLaw } from './laws/watches.ts';
import type { RecentChanges } from './recent-changes.ts';
import { seededUuid } from './seeded-random.ts';
import type { VirtualTime } from './virtual-time.ts';
import { startWatchers, type WatchProgram } from './watchers.ts';

/** A process looks less often than deployed, by up to so much: there is nothing to be found between two looks. */
const STRETCH_MAX = 4;
/** Clients here bring their credentials to every address. */
const NO_NODE_KEYS: NodeKeys = { keysOf: async () => [] };
const NO_TICKETS: WatchTicketVerifier = {
  verify: async () => ({ kind: 'refused', reason: 'there are no tickets in a simulation' }),
};

/** Runs until the time does. */
export function watchWorld(options: {
  readonly law: WatchLaw;
  readonly recent: RecentChanges;
  readonly time: VirtualTime;
  readonly plan: FaultPlan;
  readonly policy: Policy;
  /** Numbers for one purpose. */
  readonly random: (what: string) => () => number;
  readonly storeOf: (process: Process, plan: FaultPlan, fraction: () => number) => ItemStore;
  readonly planted: (items: ItemStore, process: Process) => ItemStore;
  readonly logOf: (process: Process) => Log;
  readonly hit: (mark: Mark) => void;
  readonly log: (subject: string, text: string) => void;
  readonly onFault: (name: 'watch', faults: readonly unknown[]) => void;
}): Functions<WatchProgram> {
  const { law, recent, time, policy, random, hit, log, onFault } = options;
  const plan = options.plan.apart('watches');
  const calls = random('watch calls');
  const code = random('watch code');
  const source: RandomSource = { fraction: code, uuid: () => seededUuid(code) };

  function compose(process: Process): WatchProgram {
    const store = options.storeOf(process, plan, calls);
    const items = options.planted(withStaleHeads(store, { recent, time, plan }), process);
    const stretch = 1 + calls() * (STRETCH_MAX - 1);
    const api = {
      items,
      authenticator: simulationAuthenticator,
      clock: process.clock,
      random: source,
      pause: (milliseconds: number) => time.sleep(milliseconds * stretch),
      log: options.logOf(process),
      policy,
      ...inProcess,
    };
    return {
      api: composeApi(api),
      watch: serveWatch({ ...api, tickets: NO_TICKETS, nodeKeys: NO_NODE_KEYS }),
      clock: process.clock,
    };
  }

  const functions = lambdaFunctions<WatchProgram>({
    time,
    plan,
    fraction: random('watch processes'),
    policy,
    compose,
  });
  startWatchers({ functions, law, time, plan, fraction: random('watchers'), hit, log, onFault });
  return functions;
}

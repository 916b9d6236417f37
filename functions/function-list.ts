/** Every function of the cluster. The template, the simulation and the tools iterate over this list. */

import type { FunctionManifest, TickPeriod } from '../shared/functions/function-manifest.ts';
import { apiManifest } from './api/manifest.ts';
import { cloudNodeManifest } from './cloud-node/manifest.ts';
import { evictorManifest } from './evictor/manifest.ts';
import { healthStreamManifest } from './health-stream/manifest.ts';
import { heartbeatManifest } from './heartbeat/manifest.ts';
import { nodeMarkerManifest } from './node-marker/manifest.ts';
import { nodeMonitorManifest } from './node-monitor/manifest.ts';
import { objectStreamManifest } from './object-stream/manifest.ts';
import { podGcManifest } from './pod-gc/manifest.ts';
import { schedulerManifest } from './scheduler/manifest.ts';
import { watchManifest } from './watch/manifest.ts';
import { workloadsManifest } from './workloads/manifest.ts';

/** The simulation ticks controllers in this order: another order changes what its seeds replay. */
const manifests = [
  heartbeatManifest,
  apiManifest,
  watchManifest,
  healthStreamManifest,
  objectStreamManifest,
  cloudNodeManifest,
  nodeMonitorManifest,
  nodeMarkerManifest,
  evictorManifest,
  podGcManifest,
  schedulerManifest,
  workloadsManifest,
] as const;

export type Listed = (typeof manifests)[number];

/** Role of a function: its folder under functions/, its POWERTOOLS_SERVICE_NAME and its `nodekeeper:function` tag. */
export type FunctionName = Listed['name'];

/** Functions that tick. */
export type TickingFunction = Extract<Listed, { triggers: readonly [{ kind: 'tick' }, ...unknown[]] }>['name'];

export interface ListedFunction extends FunctionManifest {
  readonly name: FunctionName;
}

export const functionList: readonly ListedFunction[] = manifests;

/**
 * The functions that tick, in the order of the list, and the policy field of their period. For the simulation.
 *
 * @tools
 */
export const tickingFunctions: readonly { readonly name: TickingFunction; readonly period: TickPeriod }[] =
  functionList.flatMap(({ name, triggers }) =>
    triggers.flatMap((trigger) =>
      trigger.kind === 'tick' ? [{ name: name as TickingFunction, period: trigger.period }] : [],
    ),
  );

/**
 * GET /metrics: reads nodes, pods, leases and deployments by pages, and the state of the controllers.
 *
 * `?scope=controller` leaves the objects out: it reads the digests of the nodes, 250 bytes each, instead of 4 KB.
 */

import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../../shared/clock.ts';
import { fleetStore } from '../../../shared/fleet/fleet-store.ts';
import { gateVerdictFor } from '../../../shared/fleet/gate.ts';
import { scanHealth } from '../../../shared/fleet/nodes/health-store.ts';
import type { Policy } from '../../../shared/fleet/policy.ts';
import type { findResource } from '../../../shared/kinds/registry.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import type { HttpRequest, HttpResponse } from '../../../shared/kubernetes/http.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { ItemStore } from '../../../shared/store/item-store.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { controllerFamilies } from './controller.rule.ts';
import { deploymentFamilies, leaseFamilies, nodeFamilies, podFamilies } from './object.rule.ts';
import { METRIC_CONTENT_TYPES, type MetricFamily, metricFormatFor, metricParts } from './open-metrics.ts';

export interface MetricsSource {
  readonly items: ItemStore;
  readonly clock: Clock;
  readonly policy: Policy;
  readonly storageOf: ApiDependencies['storageOf'];
  readonly descriptorOf: typeof findResource;
  /** Families of the process itself. Absent: there are none. */
  readonly processFamilies?: () => readonly MetricFamily[];
}

const PAGE_OBJECTS = 500;
/** The limit for one kind. A response with more would exceed the 6 MB of a function's response, compressed or not. */
const OBJECTS_MAX = 20_000;
const SCOPES = ['all', 'controller'];

type Families = (objects: readonly KubeObject[]) => readonly MetricFamily[];

const KINDS: readonly (readonly [group: string, version: string, resource: string, Families])[] = [
  ['', 'v1', 'nodes', nodeFamilies],
  ['', 'v1', 'pods', podFamilies],
  ['coordination.k8s.io', 'v1', 'leases', leaseFamilies],
  ['apps', 'v1', 'deployments', deploymentFamilies],
];

export function answerMetrics(source: MetricsSource): (request: HttpRequest) => Promise<HttpResponse> {
  return async ({ headers, query }) => {
    const scope = query.get('scope') ?? 'all';
    if (!SCOPES.includes(scope)) throw status.badRequest(`scope: Invalid value: "${scope}": must be all or controller`);
    const families = [...(await controllersOf(source))];
    // One after another: pages of several kinds would be decoded in the same turn of the event loop.
    for (const kind of scope === 'controller' ? [] : KINDS) families.push(...(await familiesOf(source, kind)));
    families.push(...(source.processFamilies?.() ?? []));
    const format = metricFormatFor(headers['accept']);
    const parts: string[] = [];
    for (const part of metricParts(families, format)) {
      parts.push(part);
      await turn();
    }
    return {
      status: 200,
      headers: { 'content-type': METRIC_CONTENT_TYPES[format] },
      body: parts.join(''),
    };
  };
}

async function controllersOf({ items, clock, policy }: MetricsSource): Promise<readonly MetricFamily[]> {
  const fleet = await fleetStore(items).read();
  const nodes = await scanHealth(items, { consistent: false, rowsExpected: fleet.state.nodes });
  const nowMs = clock.nowMs();
  return controllerFamilies(fleet, nodes, { nowMs, gate: gateVerdictFor(fleet.state.gate, { nowMs, policy }) });
}

async function familiesOf(
  { storageOf, descriptorOf }: MetricsSource,
  [group, version, resource, families]: (typeof KINDS)[number],
): Promise<readonly MetricFamily[]> {
  const descriptor = descriptorOf(group, version, resource);
  if (descriptor === undefined) return [];
  const storage = storageOf(descriptor);
  const pages: (readonly MetricFamily[])[] = [];
  let count = 0;
  for (let continueAfter: string | undefined; ; ) {
    const page = await storage.list({
      namespace: '',
      limit: PAGE_OBJECTS,
      ...(continueAfter === undefined ? {} : { continueAfter }),
    });
    await turn();
    pages.push(families(page.items));
    count += page.items.length;
    if (page.next === undefined) return joined(pages);
    if (count >= OBJECTS_MAX) {
      throw status.requestEntityTooLarge(
        `there are more than ${OBJECTS_MAX} ${resource}: request /metrics?scope=controller`,
      );
    }
    continueAfter = page.next;
  }
}

/** Each page has the same families. */
const joined = (pages: readonly (readonly MetricFamily[])[]): readonly MetricFamily[] =>
  (pages[0] ?? []).map((family, index) => ({ ...family, samples: pages.flatMap((page) => page[index]!.samples) }));

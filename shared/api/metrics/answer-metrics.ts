/**
 * GET /metrics: reads nodes, pods, leases and deployments by pages, and the state of the controllers.
 *
 * `?scope=controller` leaves the objects out: it reads the digests of the nodes, 250 bytes each, instead of 4 KB.
 */
import type { Policy } from '../../domain/policy.ts';
import { gateVerdictFor } from '../../domain/zones/gate.ts';
import * as status from '../../kube/status.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Clock } from '../../ports/clock.ts';
import type { HttpRequest, HttpResponse } from '../../ports/http.ts';
import type { ItemStore } from '../../ports/item-store.ts';
import { fleetStore } from '../../store/fleet-store.ts';
import { scanHealth } from '../../store/health-store.ts';
import type { ApiDependencies } from '../dependencies.ts';
import type { ReadDependencies } from '../request/call.ts';
import { controllerFamilies } from './controller.rule.ts';
import { deploymentFamilies, leaseFamilies, nodeFamilies, podFamilies } from './object.rule.ts';
import { METRIC_CONTENT_TYPES, type MetricFamily, metricFormatFor, metricsText } from './open-metrics.ts';

export interface MetricsSource {
  readonly items: ItemStore;
  readonly clock: Clock;
  readonly policy: Policy;
  readonly storageOf: ApiDependencies['storageOf'];
  readonly descriptorOf: ReadDependencies['descriptorOf'];
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
    const families = [
      ...(await controllersOf(source)),
      ...(scope === 'controller' ? [] : (await Promise.all(KINDS.map((kind) => familiesOf(source, kind)))).flat()),
    ];
    const format = metricFormatFor(headers['accept']);
    return {
      status: 200,
      headers: { 'content-type': METRIC_CONTENT_TYPES[format] },
      body: metricsText(families, format),
    };
  };
}

async function controllersOf({ items, clock, policy }: MetricsSource): Promise<readonly MetricFamily[]> {
  const fleet = await fleetStore(items).read();
  const nodes = await scanHealth(items, { consistent: false, rowsExpected: fleet.state.nodes });
  return controllerFamilies(fleet, nodes, gateVerdictFor(fleet.state.gate, { nowMs: clock.nowMs(), policy }));
}

async function familiesOf(
  { storageOf, descriptorOf }: MetricsSource,
  [group, version, resource, families]: (typeof KINDS)[number],
): Promise<readonly MetricFamily[]> {
  const descriptor = descriptorOf(group, version, resource);
  if (descriptor === undefined) return [];
  const storage = storageOf(descriptor);
  const objects: KubeObject[] = [];
  for (let continueAfter: string | undefined; ; ) {
    const page = await storage.list({
      namespace: '',
      limit: PAGE_OBJECTS,
      ...(continueAfter === undefined ? {} : { continueAfter }),
    });
    objects.push(...page.items);
    if (page.next === undefined) return families(objects);
    if (objects.length >= OBJECTS_MAX) {
      throw status.requestEntityTooLarge(
        `there are more than ${OBJECTS_MAX} ${resource}: request /metrics?scope=controller`,
      );
    }
    continueAfter = page.next;
  }
}

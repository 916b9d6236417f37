/**
 * Writes the Endpoints and EndpointSlices of Services with a selector, and EndpointSlices with the addresses of
 * Endpoints that clients write for Services without one.
 *
 * What is stored is read before the pods, and each write is conditional on it. So a worker that read older pods is
 * refused by the write of one that read newer ones.
 *
 * Cost of a change of a pod that a Service selects: the reads of the Service, of its Endpoints, of the slices and pods
 * of its namespace, and of the Nodes that node-zones.ts does not know; one write each for the Endpoints and a slice, if
 * they change. A namespace without Services costs nothing (object-lists.ts).
 */
import { prepareEndpointSlice, prepareEndpoints } from '../../../shared/kinds/services/defaults.ts';
import { isMirrored } from '../../../shared/kinds/services/mirrored-endpoints.ts';
import { ENDPOINT_SLICES, ENDPOINTS } from '../../../shared/kinds/services/resource.ts';
import type {
  KubeEndpointSlice,
  KubeEndpoints,
  KubeObject,
  KubePod,
  KubeService,
  ObjectRef,
} from '../../../shared/kinds/types.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import type { ObjectWrite } from '../../../shared/store/object-store.ts';
import { groupedBy } from '../../../shared/ticks/bounded-work.ts';
import type { WorkloadDependencies } from '../dependencies.ts';
import { KNOWN_FOR_MS, listObjects } from '../object-lists.ts';
import { isCommitted, refOfObject, type SyncReport, syncUnlessOvertaken, unchanged } from '../owner.ts';
import { isMirrorOf, mirroredSlices } from './mirror.rule.ts';
import type { Zones } from './node-zones.ts';
import {
  endpointsFor,
  filledEndpoints,
  hasNoSelector,
  isFilled,
  MANAGED_BY_LABEL,
  MANAGER,
  nodeNamesOf,
  SERVICE_NAME_LABEL,
  type SlicePlan,
  selectsPod,
  slicesFor,
  zonesIn,
} from './rule.ts';

/** Writes of one commit, each with its log entries, below the 100 items of a transaction. */
const WRITES_PER_COMMIT = 16;

type Dependencies = Pick<WorkloadDependencies, 'objects' | 'clock' | 'random' | 'services' | 'nodeZones'>;

const endpointsRef = ({ namespace, name }: ObjectRef): ObjectRef => ({
  resource: ENDPOINTS.resource,
  namespace,
  name,
});

/** One Service. A removed one leaves Endpoints, which are removed; its slices have an owner reference. */
export const syncEndpoints = (dependencies: Dependencies, ref: ObjectRef): Promise<SyncReport> =>
  syncUnlessOvertaken('Service', () => attemptSync(dependencies, ref));

async function attemptSync(dependencies: Dependencies, ref: ObjectRef): Promise<SyncReport | 'overtaken'> {
  const { objects, clock } = dependencies;
  const [service, stored] = (await objects.getMany([ref, endpointsRef(ref)])) as [KubeService?, KubeObject?];
  if (service === undefined) {
    dependencies.services.forget();
    if (stored === undefined) return {};
    const write: ObjectWrite = { kind: 'delete', ref: endpointsRef(ref), previous: stored };
    return isCommitted(await objects.commit({ writes: [write] })) ? {} : 'overtaken';
  }
  if (hasNoSelector(service)) return mirror(dependencies, ref, stored);
  if (!isFilled(service)) return {};
  const slices = await listObjects(dependencies, ENDPOINT_SLICES.resource, ref.namespace);
  const pods = await listObjects(dependencies, 'pods', ref.namespace);
  const zones = await dependencies.nodeZones.of(nodeNamesOf(service, pods));
  const writes = writesFor(dependencies, service, { stored, slices, pods, zones });
  if (writes.length === 0) return {};
  if (stored === undefined) dependencies.services.forget();
  for (let from = 0; from < writes.length; from += WRITES_PER_COMMIT) {
    const part = writes.slice(from, from + WRITES_PER_COMMIT);
    const outcome = await objects.commit({ writes: part, extra: [unchanged(ref, service)] });
    if (!isCommitted(outcome)) return 'overtaken';
  }
  return stored === undefined ? { lookAgainAtMs: clock.nowMs() + KNOWN_FOR_MS } : {};
}

/** After a change of Endpoints. Those of a Service with a selector are written here, and need nothing. */
export const syncMirror = (dependencies: Dependencies, ref: ObjectRef): Promise<SyncReport> =>
  syncUnlessOvertaken('Endpoints', async () => {
    const found = await dependencies.objects.getMany([ref, endpointsRef(ref)]);
    const [service, stored] = found as [KubeService?, KubeEndpoints?];
    return service !== undefined && hasNoSelector(service) ? mirror(dependencies, ref, stored) : {};
  });

async function mirror(
  dependencies: Dependencies,
  ref: ObjectRef,
  stored: KubeEndpoints | undefined,
): Promise<SyncReport | 'overtaken'> {
  const slices = await listObjects(dependencies, ENDPOINT_SLICES.resource, ref.namespace);
  const plan = mirrorPlan(ref.name, stored, slices);
  const writes = sliceWrites(dependencies, plan);
  const extra = stored === undefined ? [] : [unchanged(endpointsRef(ref), stored)];
  for (let from = 0; from < writes.length; from += WRITES_PER_COMMIT) {
    const part = writes.slice(from, from + WRITES_PER_COMMIT);
    if (!isCommitted(await dependencies.objects.commit({ writes: part, extra }))) return 'overtaken';
  }
  return {};
}

function mirrorPlan(name: string, stored: KubeEndpoints | undefined, slices: readonly KubeObject[]): SlicePlan {
  const own = slices.filter(isMirrorOf(name));
  return stored !== undefined && isMirrored(stored)
    ? mirroredSlices(stored, own)
    : { create: [], update: [], remove: own };
}

interface NamespaceContent {
  /** The Endpoints of the Service. */
  readonly stored: KubeObject | undefined;
  readonly slices: readonly KubeObject[];
  readonly pods: readonly KubePod[];
  /** By node name. */
  readonly zones: Zones;
}

function writesFor(
  { clock, random }: Pick<Dependencies, 'clock' | 'random'>,
  service: KubeService,
  { stored, slices, pods, zones }: NamespaceContent,
): readonly ObjectWrite[] {
  const { name = '', namespace = '' } = service.metadata;
  const nowMs = clock.nowMs();
  const wanted = endpointsFor(service, pods);
  const empty = { metadata: { name, namespace } };
  const filled = filledEndpoints(stored ?? empty, wanted);
  const ref = endpointsRef({ resource: '', namespace, name });
  const ofEndpoints: ObjectWrite[] =
    stored === undefined
      ? [
          {
            kind: 'create',
            ref,
            object: prepareEndpoints.prepareForCreate(withSystemFields(filled, { nowMs, uid: random.uuid() }), {
              nowMs,
            }),
          },
        ]
      : filled === stored
        ? []
        : [{ kind: 'update', ref, object: filled, previous: stored }];
  const plan = slicesFor(service, pods, slices.filter(isOurs(name)), zones);
  // From a time without a selector. Source: syncEndpoints in pkg/controller/endpointslicemirroring.
  const remove = [...plan.remove, ...slices.filter(isMirrorOf(name))];
  return [...ofEndpoints, ...sliceWrites({ clock, random }, { ...plan, remove })];
}

const withSystemFields = (
  object: KubeObject,
  { nowMs, uid }: { readonly nowMs: number; readonly uid: string },
): KubeObject => ({ ...object, metadata: { ...object.metadata, uid, creationTimestamp: formatTime(nowMs) } });

const sliceRef = (object: KubeObject): ObjectRef => refOfObject(ENDPOINT_SLICES.resource, object);

function sliceWrites(
  { clock, random }: Pick<Dependencies, 'clock' | 'random'>,
  plan: SlicePlan,
): readonly ObjectWrite[] {
  const nowMs = clock.nowMs();
  return [
    ...plan.create.map((slice): ObjectWrite => {
      const object = prepareEndpointSlice.prepareForCreate(withSystemFields(slice, { nowMs, uid: random.uuid() }), {
        nowMs,
      });
      return { kind: 'create', ref: sliceRef(object), object };
    }),
    ...plan.update.map(
      ({ previous, object }): ObjectWrite => ({ kind: 'update', ref: sliceRef(object), object, previous }),
    ),
    ...plan.remove.map((previous): ObjectWrite => ({ kind: 'delete', ref: sliceRef(previous), previous })),
  ];
}

const isOurs =
  (service: string) =>
  ({ metadata: { labels = {}, deletionTimestamp } }: KubeEndpointSlice): boolean =>
    labels[SERVICE_NAME_LABEL] === service && labels[MANAGED_BY_LABEL] === MANAGER && deletionTimestamp === undefined;

/** The Services that select pods with some of these labels. */
export async function servicesSelecting(
  { services }: Pick<Dependencies, 'services'>,
  namespace: string,
  labels: readonly Readonly<Record<string, string>>[],
): Promise<readonly ObjectRef[]> {
  const known: readonly KubeService[] = await services.in(namespace);
  return known
    .filter((service) => isFilled(service) && labels.some((each) => selectsPod(service, each)))
    .map((service) => refOfObject('services', service));
}

/** For the sweep: the Services with other endpoints than they must have. Each namespace is read once. */
export async function unfilledServices(
  dependencies: Dependencies,
  all: readonly KubeService[],
): Promise<ReadonlySet<KubeObject>> {
  const found = new Set<KubeObject>();
  const written = all.filter((service) => isFilled(service) || hasNoSelector(service));
  for (const [namespace, services] of groupedBy(written, ({ metadata }) => metadata.namespace ?? '')) {
    const stored = await listObjects(dependencies, ENDPOINTS.resource, namespace);
    const slices = await listObjects(dependencies, ENDPOINT_SLICES.resource, namespace);
    const pods = services.some(isFilled) ? await listObjects(dependencies, 'pods', namespace) : [];
    // The sweep reads no Nodes.
    const zones = zonesIn(slices);
    const byName = new Map(stored.map((object) => [object.metadata.name, object]));
    for (const service of services) {
      const content = { stored: byName.get(service.metadata.name), slices, pods, zones };
      const { name = '' } = service.metadata;
      const writes = hasNoSelector(service)
        ? sliceWrites(dependencies, mirrorPlan(name, content.stored, slices))
        : writesFor(dependencies, service, content);
      if (writes.length > 0) found.add(service);
    }
  }
  return found;
}

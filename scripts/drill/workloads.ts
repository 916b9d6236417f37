/** The objects of a drill: pods that nothing may restart, and a rollout. */
import type { ApiAnswer, SendRequest } from '../../demo/fleet/api-client.ts';
import type { KubeObject, KubePod } from '../../shared/kinds/types.ts';

export const NAMESPACE = 'drill';
const APPS = `/apis/apps/v1/namespaces/${NAMESPACE}`;
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
export const CONFIG_MAPS = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
export const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const PAGE = 500;
const PAGES_MAX = 1_000;

/** @throws Error for an answer other than 2xx */
export function bodyOf(answer: ApiAnswer, what: string): KubeObject {
  if (answer.kind === 'answered' && answer.status < 300) return answer.body as KubeObject;
  throw new Error(`${what}: ${JSON.stringify(answer.kind === 'answered' ? answer.body : String(answer.cause))}`);
}

/** Every object of a list, page by page. */
export async function listAll(send: SendRequest, path: string): Promise<readonly KubeObject[]> {
  const found: KubeObject[] = [];
  let next = '';
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const query = `${path.includes('?') ? '&' : '?'}limit=${PAGE}${next === '' ? '' : `&continue=${encodeURIComponent(next)}`}`;
    const list = bodyOf(await send({ method: 'GET', path: path + query }), path) as unknown as {
      readonly items: readonly KubeObject[];
      readonly metadata: { readonly continue?: string };
    };
    found.push(...list.items);
    next = list.metadata.continue ?? '';
    if (next === '') return found;
  }
  throw new Error(`${path} has more than ${PAGES_MAX} pages`);
}

const template = (app: string, image: string) => ({
  metadata: { labels: { app } },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', image, command: ['/bin/sh', '-c', 'exec sleep 1000000'] }],
  },
});

const ROLLING = `${APPS}/deployments/rolling`;
const imageOf = (revision: number): string => `registry.example/rolling:${revision}`;

/** A pod of a DaemonSet on each machine, and a Deployment. */
export async function createWorkloads(send: SendRequest, replicas: number): Promise<void> {
  const create = async (path: string, body: object): Promise<void> => {
    const answer = await send({ method: 'POST', path, body });
    // Sent twice: the first request had no answer.
    if (answer.kind !== 'answered' || answer.status !== 409) bodyOf(answer, path);
  };
  const spec = (app: string, image: string) => ({
    selector: { matchLabels: { app } },
    template: template(app, image),
  });
  await create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  await create(`${APPS}/daemonsets`, {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'steady' },
    spec: spec('steady', 'registry.example/steady:1'),
  });
  await create(`${APPS}/deployments`, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'rolling' },
    spec: { ...spec('rolling', imageOf(0)), replicas, strategy: { rollingUpdate: { maxSurge: '25%' } } },
  });
}

export async function startRollout(send: SendRequest, revision: number): Promise<void> {
  const body = { spec: { template: template('rolling', imageOf(revision)) } };
  const contentType = 'application/strategic-merge-patch+json';
  bodyOf(await send({ method: 'PATCH', path: ROLLING, body, contentType }), ROLLING);
}

export async function isRolledOut(send: SendRequest, replicas: number): Promise<boolean> {
  const { metadata, status = {} } = bodyOf(await send({ method: 'GET', path: ROLLING }), ROLLING);
  const counts = ['replicas', 'updatedReplicas', 'availableReplicas'].map((name) => status[name]);
  return status['observedGeneration'] === metadata.generation && counts.every((count) => count === replicas);
}

/** A running container, and how often the machine had to start it again. */
export interface RunningContainers {
  /** Of each pod of the DaemonSet, by uid: what changes when a container is started. */
  readonly steady: ReadonlyMap<string, string>;
  /** Restarts of the containers of the Deployment. */
  readonly rollingRestarts: number;
}

export async function readContainers(send: SendRequest): Promise<RunningContainers> {
  const pods = (await listAll(send, PODS)) as readonly KubePod[];
  const steady = new Map<string, string>();
  let rollingRestarts = 0;
  for (const { metadata, status } of pods) {
    const containers = status?.containerStatuses ?? [];
    if (metadata.labels?.['app'] === 'steady') {
      const started = containers.map(({ containerID, restartCount, state }) => [containerID, restartCount, state]);
      steady.set(metadata.uid ?? '', JSON.stringify([status?.phase, started]));
    } else for (const { restartCount = 0 } of containers) rollingRestarts += restartCount;
  }
  return { steady, rollingRestarts };
}

/** Containers that do not run any more as they did. */
export const restartedContainers = (before: RunningContainers, after: RunningContainers): number =>
  [...before.steady].filter(([uid, started]) => after.steady.get(uid) !== started).length +
  Math.max(0, after.rollingRestarts - before.rollingRestarts);

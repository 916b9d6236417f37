/**
 * People who use workloads that must not run twice (annotation `nodekeeper.dev/offline-stop-after`): StatefulSets,
 * Recreate Deployments and Jobs. They roll out, delete and create again under the same name.
 */
import { OFFLINE_STOP_AFTER } from '../shared/kinds/pods/offline-stop.ts';
import { MERGE_PATCH, type PeopleOptions, repeatRandomly, sendAsOperator } from './people.ts';
import { oneOf } from './seeded-random.ts';

/** Where a hub may move pods, most of them outlive a power cut. */
const MEAN_MS = { create: 20_000, change: 150_000, changeOfMovable: 900_000 } as const;
const DELETED_SHARE = 0.4;
const APPS = '/apis/apps/v1/namespaces/default';
const LIST = [
  { root: `${APPS}/statefulsets`, name: 'ledger' },
  { root: `${APPS}/statefulsets`, name: 'till' },
  { root: `${APPS}/deployments`, name: 'gate' },
  { root: `${APPS}/deployments`, name: 'meter' },
  { root: '/apis/batch/v1/namespaces/default/jobs', name: 'count' },
] as const;
type OnceApp = (typeof LIST)[number];
/** Most are short: a run shall see their end. */
const TIMES = ['10m', '10m', '10m', '10m', '11m', '1h'] as const;
/** Those that a hub may move: it counts anew when its process dies. */
const MOVABLE_TIMES = ['10m', '10m', '10m', '11m'] as const;
const TAINTS = ['node.kubernetes.io/unreachable', 'node.kubernetes.io/not-ready'];

/** `isMovable`: a hub may start them without the cluster, so they have no token. */
export function runOnce(options: PeopleOptions, { isMovable }: { readonly isMovable: boolean }): void {
  const { fraction, send, log } = options;
  const times = isMovable ? MOVABLE_TIMES : TIMES;
  let images = 0;
  const below = (count: number): number => Math.floor(fraction() * count);

  function templateOf(name: string): object {
    images += 1;
    const tolerationSeconds = 5 + below(120);
    return {
      metadata: { labels: { app: name }, annotations: { [OFFLINE_STOP_AFTER]: oneOf(times, fraction) } },
      spec: {
        ...(isMovable && { automountServiceAccountToken: false }),
        terminationGracePeriodSeconds: 1 + below(40),
        tolerations: TAINTS.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds })),
        containers: [{ name: 'main', image: `registry.example/once:${images}` }],
      },
    };
  }

  function specOf({ root, name }: OnceApp): object {
    const template = templateOf(name) as { readonly spec: object };
    const replicas = 1 + below(3);
    const selector = { matchLabels: { app: name } };
    if (root.endsWith('jobs')) {
      const spec = { ...template.spec, restartPolicy: 'Never' };
      return { parallelism: replicas, completions: 20, backoffLimit: 1_000, template: { ...template, spec } };
    }
    if (root.endsWith('deployments')) return { replicas, selector, template, strategy: { type: 'Recreate' } };
    return { replicas, selector, template, serviceName: name };
  }

  async function create(): Promise<void> {
    for (const app of LIST) {
      const found = await sendAsOperator(send, { method: 'GET', path: `${app.root}/${app.name}` });
      if (found.status !== 404) continue;
      log('', `a person creates ${app.name}`);
      const body = { metadata: { name: app.name }, spec: specOf(app) };
      await sendAsOperator(send, { method: 'POST', path: app.root, body });
    }
  }

  async function change(): Promise<void> {
    const app = oneOf(LIST, fraction)!;
    const path = `${app.root}/${app.name}`;
    if (fraction() < DELETED_SHARE || app.root.endsWith('jobs')) {
      const propagationPolicy = oneOf(['Background', 'Foreground'], fraction);
      log('', `a person deletes ${app.name}: ${propagationPolicy}`);
      const body = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy };
      await sendAsOperator(send, { method: 'DELETE', path, body });
      return;
    }
    log('', `a person rolls out ${app.name}`);
    const body = { spec: { template: templateOf(app.name) } };
    await sendAsOperator(send, { method: 'PATCH', path, body, contentType: MERGE_PATCH });
  }

  void repeatRandomly(options, { leastMs: 500, meanMs: MEAN_MS.create }, create);
  void repeatRandomly(
    options,
    { leastMs: 60_000, meanMs: isMovable ? MEAN_MS.changeOfMovable : MEAN_MS.change },
    change,
  );
}

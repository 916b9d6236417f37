/**
 * People who use workloads: they create, scale, roll out, delete with each propagation policy, and create again under
 * the same name. Some pods of Jobs end. ConfigMaps have one or two owners each, one of them of a kind that is not
 * served. Only a few names are used, so an object often has the name of one that was deleted.
 */
import { podPath } from '../agent/rules/pod-requests.ts';
import { ZONE_LABEL } from '../shared/fleet/nodes/node-digest.ts';
import { OFFLINE_STOP_AFTER } from '../shared/kinds/pods/offline-stop.ts';
import type { KubeObject } from '../shared/kinds/types.ts';
import type { EndpointAnswer, EndpointRequest } from './endpoint.ts';
import { MERGE_PATCH, type PeopleOptions, repeatRandomly, sendAsOperator } from './people.ts';
import { oneOf, seededUuid } from './seeded-random.ts';

const MEAN_MS = { act: 10_000, config: 20_000, finish: 15_000 } as const;
const APPS = '/apis/apps/v1/namespaces/default';
const CONFIGS = '/api/v1/namespaces/default/configmaps';
const POLICIES = ['Background', 'Background', 'Foreground', 'Orphan'] as const;
/** Images of the templates. A rollout changes to another one. */
const IMAGES = 4;
const CONFIG_OWNERS = 3;
const DEPENDENTS_MAX = 12;

type AppKind = 'deployments' | 'replicasets' | 'daemonsets' | 'statefulsets' | 'jobs';

interface App {
  readonly kind: AppKind;
  readonly name: string;
}

const APP_LIST: readonly App[] = [
  { kind: 'deployments', name: 'web' },
  { kind: 'deployments', name: 'shop' },
  { kind: 'deployments', name: 'queue' },
  { kind: 'replicasets', name: 'set' },
  { kind: 'daemonsets', name: 'agent' },
  { kind: 'statefulsets', name: 'db' },
  { kind: 'statefulsets', name: 'cache' },
  { kind: 'jobs', name: 'batch' },
  { kind: 'jobs', name: 'report' },
];

export function useWorkloads(options: PeopleOptions): void {
  const people = new WorkloadUsers(options);
  void repeatRandomly(options, { leastMs: 500, meanMs: MEAN_MS.act }, () => people.act());
  void repeatRandomly(options, { leastMs: 500, meanMs: MEAN_MS.config }, () => people.configure());
  void repeatRandomly(options, { leastMs: 500, meanMs: MEAN_MS.finish }, () => people.finish());
}

class WorkloadUsers {
  readonly #options: PeopleOptions;
  #made = 0;

  constructor(options: PeopleOptions) {
    this.#options = options;
  }

  /** One change of one workload. */
  async act(): Promise<void> {
    const app = this.#oneOf(APP_LIST);
    const path = `${rootOf(app.kind)}/${app.name}`;
    const found = await this.#ask({ method: 'GET', path });
    if (found.status === 404) return this.#create(app);
    if (found.status !== 200) return;
    const what = this.#options.fraction();
    if (app.kind === 'jobs') return what < 0.4 ? this.#delete(app, path) : this.#changeJob(app, path);
    if (what < 0.2) return this.#delete(app, path);
    if (what < 0.6 && app.kind !== 'daemonsets') return this.#change(app, path, { replicas: this.#below(7) }, 'scales');
    const template = { spec: { containers: [this.#container()] } };
    await this.#change(app, path, { template }, 'rolls out');
  }

  /** A dependent with its owners, or the end of an owner. */
  async configure(): Promise<void> {
    const owner = `${CONFIGS}/owner-${this.#below(CONFIG_OWNERS)}`;
    const found = await this.#ask({ method: 'GET', path: owner });
    if (found.status === 404) {
      await this.#ask({ method: 'POST', path: CONFIGS, body: configMap(owner.slice(CONFIGS.length + 1), []) });
    } else if (found.status === 200) {
      if (this.#options.fraction() < 0.3) await this.#deleteWith(owner);
      else await this.#createDependent(found.body as KubeObject);
    }
  }

  /** A pod of a Job ends. For those that must not run twice only their machine says so. */
  async finish(): Promise<void> {
    const pods = [...this.#options.view.pods.values()].filter(
      ({ metadata, status }) =>
        metadata.labels?.['job-name'] !== undefined &&
        metadata.annotations?.[OFFLINE_STOP_AFTER] === undefined &&
        status?.['phase'] === 'Running',
    );
    if (pods.length === 0) return;
    const phase = this.#options.fraction() < 0.8 ? 'Succeeded' : 'Failed';
    const path = `${podPath(this.#oneOf(pods))}/status`;
    await this.#ask({ method: 'PATCH', path, body: { status: { phase } }, contentType: MERGE_PATCH });
  }

  #ask(request: Omit<EndpointRequest, 'who'>): Promise<EndpointAnswer> {
    return sendAsOperator(this.#options.send, request);
  }

  #below(count: number): number {
    return Math.floor(this.#options.fraction() * count);
  }

  #oneOf<T>(list: readonly T[]): T {
    return oneOf(list, this.#options.fraction)!;
  }

  #container() {
    return { name: 'main', image: `registry.example/main:${this.#below(IMAGES)}` };
  }

  async #create(app: App): Promise<void> {
    this.#options.log('', `a person creates ${app.kind}/${app.name}`);
    const path = rootOf(app.kind);
    await this.#ask({ method: 'POST', path, body: { metadata: { name: app.name }, spec: this.#specOf(app) } });
  }

  async #change(app: App, path: string, spec: object, what: string): Promise<void> {
    this.#options.log('', `a person ${what} ${app.kind}/${app.name}: ${JSON.stringify(spec)}`);
    await this.#ask({ method: 'PATCH', path, body: { spec }, contentType: MERGE_PATCH });
  }

  #changeJob(app: App, path: string): Promise<void> {
    const what = this.#options.fraction();
    if (what < 0.6) return this.#change(app, path, { parallelism: this.#below(5) }, 'scales');
    return this.#change(app, path, { suspend: what < 0.75 }, 'suspends or resumes');
  }

  /** In half of all cases it is created again at once, while its dependents still exist. */
  async #delete(app: App, path: string): Promise<void> {
    await this.#deleteWith(path);
    if (this.#options.fraction() < 0.5) await this.#create(app);
  }

  async #deleteWith(path: string): Promise<void> {
    const propagationPolicy = this.#oneOf(POLICIES);
    this.#options.log('', `a person deletes ${path}: ${propagationPolicy}`);
    await this.#ask({ method: 'DELETE', path, body: { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy } });
  }

  async #createDependent(owner: KubeObject): Promise<void> {
    this.#made += 1;
    const owners: object[] = [referenceTo(owner, this.#options.fraction() < 0.5)];
    const what = this.#options.fraction();
    if (what < 0.3) owners.push(unservedOwner(seededUuid(this.#options.fraction)));
    else if (what < 0.6) {
      const other = await this.#ask({ method: 'GET', path: `${CONFIGS}/owner-${this.#below(CONFIG_OWNERS)}` });
      const { metadata } = other.body as KubeObject;
      if (other.status === 200 && metadata.uid !== owner.metadata.uid) {
        owners.push(referenceTo(other.body as KubeObject, false));
      }
    }
    const name = `dependent-${this.#made % DEPENDENTS_MAX}`;
    // The name may still be in use.
    await this.#ask({ method: 'DELETE', path: `${CONFIGS}/${name}` });
    await this.#ask({ method: 'POST', path: CONFIGS, body: configMap(name, owners) });
  }

  #specOf({ kind, name }: App): object {
    const { fraction } = this.#options;
    const labels = { app: name };
    const tolerationSeconds = 5 + this.#below(60);
    const keys = ['node.kubernetes.io/unreachable', 'node.kubernetes.io/not-ready'];
    const isImpatient = fraction() < 0.6;
    const tolerations = isImpatient
      ? keys.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds }))
      : [];
    const template = {
      metadata: { labels },
      spec: { terminationGracePeriodSeconds: 1 + this.#below(20), tolerations, containers: [this.#container()] },
    };
    const replicas = 1 + this.#below(5);
    const selector = { matchLabels: labels };
    switch (kind) {
      case 'deployments':
        return { replicas, selector, template, strategy: this.#strategyOf(name) };
      case 'replicasets':
        return { replicas, selector, template };
      case 'daemonsets':
        return {
          selector,
          template: { ...template, spec: { ...template.spec, nodeSelector: { [ZONE_LABEL]: 'zone-0' } } },
          updateStrategy: {
            rollingUpdate: fraction() < 0.5 ? { maxUnavailable: 1 } : { maxSurge: 1, maxUnavailable: 0 },
          },
        };
      case 'statefulsets':
        return {
          replicas,
          selector,
          template,
          serviceName: name,
          podManagementPolicy: name === 'cache' ? 'Parallel' : 'OrderedReady',
        };
      case 'jobs':
        return {
          parallelism: 1 + this.#below(4),
          completions: 2 + this.#below(8),
          backoffLimit: 6,
          ...(fraction() < 0.5 ? { ttlSecondsAfterFinished: 20 } : {}),
          template: { spec: { ...template.spec, restartPolicy: 'Never' } },
        };
    }
  }

  #strategyOf(name: string): object {
    if (name === 'queue') return { type: 'Recreate' };
    const rollingUpdate = this.#oneOf([
      { maxSurge: 1, maxUnavailable: 0 },
      { maxSurge: 0, maxUnavailable: 1 },
      { maxSurge: '25%', maxUnavailable: '25%' },
      { maxSurge: 2, maxUnavailable: 1 },
    ]);
    return { type: 'RollingUpdate', rollingUpdate };
  }
}

const rootOf = (kind: AppKind): string =>
  kind === 'jobs' ? '/apis/batch/v1/namespaces/default/jobs' : `${APPS}/${kind}`;

const configMap = (name: string, ownerReferences: readonly object[]): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default', ...(ownerReferences.length === 0 ? {} : { ownerReferences }) },
});

const referenceTo = ({ metadata }: KubeObject, blockOwnerDeletion: boolean): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  name: metadata.name,
  uid: metadata.uid,
  blockOwnerDeletion,
});

/** Nothing is known about an owner of such a kind. */
const unservedOwner = (uid: string): object => ({
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  name: 'widget',
  uid,
});

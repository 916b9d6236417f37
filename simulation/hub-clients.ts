/**
 * Clients of hubs. Some list a resource at a hub and follow its log, as a watch does: they resume after the death of
 * its process, and at the other hub. Others write through a hub.
 */
import type { Upstream, UpstreamAnswer } from '../server/hub/upstream.ts';
import type { KubeObject } from '../shared/kinds/types.ts';
import { StoreFault } from '../shared/store/item-store.ts';
import { OPERATOR } from './access.ts';
import type { HubLink } from './hub-link.ts';
import type { HubProcess } from './hub-process.ts';
import type { HubClient, HubLaw, PassedWrite, WatchedHub } from './laws/hub.ts';
import { oneOf } from './seeded-random.ts';
import type { VirtualTime } from './virtual-time.ts';

const FOLLOWED = ['pods', 'nodes', 'configmaps', 'secrets', 'pods', 'configmaps'] as const;
/** Between two looks at the log; a held watch is woken. Milliseconds. */
const LOOK_MAX_MS = 1_500;
/** A watch that nothing wakes reads as well. Milliseconds. */
const READ_MS = 60_000;
const CHANGES_MAX = 40;
const READS_MAX = 100;
const LEAVES_SHARE = 0.01;
const WRITE_MEAN_MS = 6_000;
const WRITTEN = ['configmaps', 'secrets'] as const;
const NAMES = 5;
/** Of server/hub/replica.ts: a client waits as long for its own write. Milliseconds. */
const CATCH_UP_MS = 2_000;
const PASS_MS = 30_000;

/** A hub for its clients. */
export interface ServingHub extends WatchedHub {
  readonly link: HubLink;
  /** undefined while none runs. */
  readonly process: HubProcess | undefined;
  /** When a request of it, or a write of its file, last failed. */
  readonly failedAtMs: number;
}

export interface HubClientsOptions {
  readonly hubs: readonly ServingHub[];
  readonly law: HubLaw;
  readonly time: VirtualTime;
  readonly fraction: () => number;
  readonly log: (subject: string, text: string) => void;
}

export function startHubClients(options: HubClientsOptions): void {
  for (const [index, resource] of FOLLOWED.entries()) {
    void new FollowingClient({ name: `client-${index + 1}`, resource }, options).live();
  }
  void write(options);
}

class FollowingClient {
  readonly #client: HubClient;
  readonly #options: HubClientsOptions;
  #hub: ServingHub;
  /** The last version that it has received everything up to. */
  #cursor: number | undefined;
  /** Its process, the count of commits that it has read up to, and when it read them. */
  #seen: { readonly process: HubProcess; readonly count: number; readonly atMs: number } | undefined;

  constructor(client: HubClient, options: HubClientsOptions) {
    this.#client = client;
    this.#options = options;
    this.#hub = oneOf(options.hubs, options.fraction)!;
  }

  async live(): Promise<void> {
    const { time, fraction, law, hubs } = this.#options;
    for (;;) {
      await time.sleep(200 + fraction() * LOOK_MAX_MS);
      if (fraction() < LEAVES_SHARE) {
        law.onAway(this.#client);
        this.#seen = undefined;
        this.#hub = oneOf(hubs, fraction)!;
      }
      const { process } = this.#hub;
      if (process === undefined) {
        law.onAway(this.#client);
        this.#seen = undefined;
        if (fraction() < 0.1) this.#hub = oneOf(hubs, fraction)!;
        continue;
      }
      try {
        await Promise.race([this.#follow(process), process.life.ended]);
      } catch (error) {
        if (!(error instanceof StoreFault)) throw error;
      }
    }
  }

  async #follow(process: HubProcess): Promise<void> {
    const { law, time } = this.#options;
    const { resource } = this.#client;
    // The hub passes requests for what it does not hold. The client does not follow the cluster itself.
    if (!process.replica.holds(resource)) {
      law.onAway(this.#client);
      this.#seen = undefined;
      return;
    }
    if (this.#cursor === undefined) return this.#list(process);
    if (this.#seen?.process !== process) law.onResumed(this.#client, this.#hub);
    else if (this.#seen.count === process.signals.count(resource) && time.nowMs() - this.#seen.atMs < READ_MS) return;
    const seen = { process, count: process.signals.count(resource), atMs: time.nowMs() };
    let more = true;
    for (let reads = 0; more && reads < READS_MAX; reads += 1) {
      const outcome = await process.changes.readChanges({
        resource,
        after: this.#cursor,
        limit: CHANGES_MAX,
        eager: true,
      });
      if (process.life.isDead) return;
      if (outcome.kind === 'expired') {
        this.#options.log(this.#client.name, `receives Expired for ${this.#cursor} at ${this.#hub.name}`);
        law.onExpired(this.#client);
        this.#cursor = undefined;
        return;
      }
      law.onChanges(this.#client, outcome.changes, outcome.through);
      this.#cursor = outcome.through;
      more = outcome.more;
    }
    // With changes left it reads on.
    this.#seen = more ? { ...seen, count: -1 } : seen;
  }

  async #list({ changes, objects, life, replica }: HubProcess): Promise<void> {
    const { resource } = this.#client;
    const version = await changes.currentVersion(resource);
    const listed = await objects.list({ resource });
    if (life.isDead || !replica.holds(resource)) return;
    this.#cursor = version;
    this.#options.law.onListed(this.#client, this.#hub, version, listed.objects);
    this.#options.log(
      this.#client.name,
      `lists ${listed.objects.length} ${resource} at ${version} of ${this.#hub.name}`,
    );
  }
}

/** Writes through hubs, one after the other, each a while after its predecessor. */
async function write(options: HubClientsOptions): Promise<void> {
  const { hubs, time, fraction, law } = options;
  for (let writes = 1; ; writes += 1) {
    await time.sleep(200 - Math.log(1 - fraction()) * WRITE_MEAN_MS);
    const hub = oneOf(hubs, fraction)!;
    const { process } = hub;
    if (process === undefined) continue;
    const resource = oneOf(WRITTEN, fraction)!;
    const name = `site-${1 + Math.floor(fraction() * NAMES)}`;
    const request = requestOf({ resource, name, what: fraction(), text: `w${writes}` });
    const passing = hub.link.upstream(process.life, OPERATOR).send(request, { timeoutMs: PASS_MS });
    const answer = await Promise.race([passing.catch(() => undefined), process.life.ended]);
    const passed = answer && passedWrite(answer, { resource, name, isDeletion: request.method === 'DELETE' });
    if (passed === undefined) continue;
    const ackedAtMs = time.nowMs();
    await Promise.race([process.replica.caughtUp(resource), process.life.ended]);
    const hasFailed = process.life.isDead || hub.failedAtMs >= ackedAtMs || hub.calmSinceMs() === undefined;
    if (!hasFailed && time.nowMs() - ackedAtMs < CATCH_UP_MS) law.onCaughtUp(hub, passed);
  }
}

function requestOf({
  resource,
  name,
  what,
  text,
}: {
  readonly resource: string;
  readonly name: string;
  readonly what: number;
  readonly text: string;
}): Parameters<Upstream['send']>[0] {
  const path = `/api/v1/namespaces/default/${resource}`;
  const headers = { accept: 'application/json' };
  if (what < 0.25) return { method: 'DELETE', path: `${path}/${name}`, headers };
  const object = {
    metadata: { name },
    ...(resource === 'secrets' ? { stringData: { text } } : { data: { text } }),
  };
  const body = Buffer.from(JSON.stringify(object));
  return what < 0.65
    ? { method: 'POST', path, headers: { ...headers, 'content-type': 'application/json' }, body }
    : {
        method: 'PATCH',
        path: `${path}/${name}`,
        headers: { ...headers, 'content-type': 'application/merge-patch+json' },
        body,
      };
}

/** undefined: nothing was written. */
function passedWrite(
  { status, body }: UpstreamAnswer,
  write: { readonly resource: string; readonly name: string; readonly isDeletion: boolean },
): PassedWrite | undefined {
  if (status !== 200 && status !== 201) return undefined;
  const { resource, name, isDeletion } = write;
  const answered = JSON.parse(body.toString('utf8')) as KubeObject & { readonly details?: { readonly uid?: string } };
  const uid = answered.metadata?.uid ?? answered.details?.uid ?? '';
  const version = isDeletion ? undefined : Number(answered.metadata.resourceVersion);
  return { resource, namespace: 'default', name, uid, version };
}

/**
 * Approves, signs and deletes CertificateSigningRequests, as upstream's csrapproving, csrsigning and csrcleaner. Only a
 * process on its own machine does: it has the key of the authority.
 *
 * Who can obtain which identity by a certificate of this authority:
 *
 * - A machine, `system:node:NAME` in `system:nodes`: whoever may enrol NAME (enrol-node.ts); with the right to create
 *   `certificatesigningrequests/nodeclient`, as upstream, whoever asks for a free NAME. A request is approved only
 *   after its key is one of NAME's keys, in the transaction that counts the use of a bootstrap token. So a certificate
 *   is the same proof as a token that the machine signs itself: the first key of a name wins, a machine adds keys by
 *   one that it has, and the deletion of the NodeIdentity ends both. A certificate with another key is refused.
 * - A server of a machine: whoever a person approves. It is not for clients, so no user signs in with it, and it has no
 *   name of the API, so it cannot stand in for it.
 * - Any other user and groups, but those that may do everything and those of machines, bootstrap tokens and probes:
 *   whoever a person approves who has the verb `approve` on the signer.
 *
 * Everything is checked again before it is signed: that the request is signed by its key, what it asks for, and that
 * the machine still has the key. A changed row of the database is not signed as what was approved.
 *
 * It may end between any two steps, and run twice at once. A key that was added and not approved is there when the
 * request is looked at again. A certificate that was signed and not written is lost, and another one is signed; of two
 * writes one succeeds. A change looks at a request; the hourly sweep looks at all of them, and deletes those of no use.
 */
import { X509Certificate } from 'node:crypto';
import { type EnrolDependencies, type EnrolledBy, enrolNode } from '../../functions/api/access/enrol-node.ts';
import { isSignedByItsKey, nodeKeyIn } from '../../functions/api/access/request-signature.ts';
import { nodeIdentity } from '../../shared/access/authorize.ts';
import type { Authorizer } from '../../shared/access/authorizer.ts';
import { BOOTSTRAP_GROUP, BOOTSTRAP_USER_PREFIX } from '../../shared/access/bootstrap-token.ts';
import { KEY_ID_EXTRA } from '../../shared/access/node-identity.ts';
import type { ResourceStorage } from '../../shared/api/resource-storage.ts';
import type { Clock } from '../../shared/clock.ts';
import { defined } from '../../shared/defined.ts';
import { type Authority, makeCertificate } from '../../shared/host/certificate.ts';
import { conditionOf } from '../../shared/kinds/certificates/signing-request.ts';
import type { KubeCertificateSigningRequest } from '../../shared/kinds/types.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import type { Log } from '../../shared/observability/log.ts';
import { UNBOUNDED, workThrough } from '../../shared/ticks/bounded-work.ts';
import type { ChangesOutcome, ItemChangeRecord } from '../../shared/ticks/item-change.ts';
import { isOutdated, type NextStep, nextStep, type SigningCircumstances } from './next-step.ts';

export interface SigningRequestOptions {
  readonly requests: Pick<ResourceStorage, 'get' | 'list' | 'remove' | 'update'>;
  readonly authorizer: Pick<Authorizer, 'authorize'>;
  readonly enrolment: EnrolDependencies;
  readonly authority: Authority;
  readonly isServerName: SigningCircumstances['isServerName'];
  readonly clock: Clock;
  readonly log: Log;
}

export interface SigningRequests {
  /** Changes of requests. */
  onRecords(records: readonly ItemChangeRecord[]): Promise<ChangesOutcome>;
  /** Looks at every request. @throws AggregateError with what failed; the next sweep does it */
  sweep(): Promise<void>;
}

const CONCURRENCY_MAX = 16;
/** Approved, signed, and as often again because of other writers. */
const STEPS_MAX = 6;
const SWEEP_MS = 3_600_000;
const PAGE = 500;
const PAGES_MAX = 1_000;

export function signingRequests(options: SigningRequestOptions): SigningRequests {
  const { requests, authorizer, enrolment, authority, clock, log } = options;
  const authorityEndsAtMs = new X509Certificate(authority.certificatePem).validToDate.getTime();

  const stepOf = (object: KubeCertificateSigningRequest): NextStep => {
    const circumstances: SigningCircumstances = {
      nowMs: clock.nowMs(),
      isServerName: options.isServerName,
      authorityEndsAtMs,
    };
    return nextStep(object, circumstances);
  };

  async function settle(name: string): Promise<void> {
    for (let steps = 0; steps < STEPS_MAX; steps += 1) {
      const object: KubeCertificateSigningRequest | undefined = await requests.get('', name);
      if (object === undefined) return;
      const status = await statusAfter(object, stepOf(object));
      if (status === undefined) return;
      await requests.update({ ...object, status: { ...object.status, ...status } }, object);
    }
    throw new Error(`other writers change certificate signing request ${name}`);
  }

  /** undefined: it stays as it is. */
  async function statusAfter(
    object: KubeCertificateSigningRequest,
    step: NextStep,
  ): Promise<KubeCertificateSigningRequest['status'] | undefined> {
    switch (step.kind) {
      case 'none':
        return undefined;
      case 'approve': {
        const message = await approvalOf(object, step);
        return message === undefined
          ? undefined
          : withCondition(object, 'Approved', { reason: AUTO_APPROVED, message });
      }
      case 'fail':
        return withCondition(object, 'Failed', { reason: 'SignerValidationFailure', message: step.why });
      case 'sign': {
        const why = await signingFault(object, step);
        if (why !== undefined) return statusAfter(object, { kind: 'fail', why });
        const { request, validity } = step;
        const certificate = await makeCertificate(authority, {
          ...request,
          usages: object.spec?.usages ?? [],
          ...validity,
        });
        log.info('a certificate was signed', { request: nameOf(object), user: request.commonName });
        return { certificate: Buffer.from(certificate).toString('base64') };
      }
    }
  }

  /** How the approval is described. undefined: a person may approve it. */
  async function approvalOf(
    object: KubeCertificateSigningRequest,
    { request, nodeName, rights }: Extract<NextStep, { kind: 'approve' }>,
  ): Promise<string | undefined> {
    const nowMs = clock.nowMs();
    const author = authorOf(object);
    if (!isSignedByItsKey(request)) return undefined;
    const key = nodeKeyIn(request);
    if (key.kind === 'invalid') return undefined;
    for (const right of rights) {
      const question = { ...RIGHT, subresource: right };
      if (!(await authorizer.authorize(author, question, nowMs)).allowed) continue;
      const answer = await enrolNode(enrolment, { nodeName, key, by: enrolledBy(author), nowMs, dryRun: false });
      if (answer.kind === 'created' || answer.kind === 'present') {
        return `client certificate of a kubelet, by the right to create ${right}`;
      }
      if (answer.kind === 'contended') throw new Error(`other writers change the identity of ${nodeName}`);
      const why = answer.kind === 'taken' ? `node ${nodeName} has an identity` : answer.reason;
      log.warn('a certificate signing request was not approved', { request: nameOf(object), why });
    }
    return undefined;
  }

  /** Why it is not signed after all. A person who approved it has enrolled its key. */
  async function signingFault(
    object: KubeCertificateSigningRequest,
    { request, nodeName }: Extract<NextStep, { kind: 'sign' }>,
  ): Promise<string | undefined> {
    if (!isSignedByItsKey(request)) return 'the request is not signed by the key that it contains';
    if (nodeName === undefined) return undefined;
    const key = nodeKeyIn(request);
    if (key.kind === 'invalid') return `the key ${key.why}`;
    const identity = await enrolment.identities.read(nodeName);
    if (identity?.keys.some(({ keyId }) => keyId === key.keyId)) return undefined;
    if (conditionOf(object, 'Approved')?.reason === AUTO_APPROVED) return `the key is not one of node ${nodeName}`;
    const nowMs = clock.nowMs();
    if (identity === undefined) {
      const by = { kind: 'user', name: authorOf(object).username } as const;
      await enrolNode(enrolment, { nodeName, key, by, nowMs, dryRun: false });
    } else {
      // Beside the key that its author has, as a rotation, or the newest one.
      const own = authorOf(object).extra?.[KEY_ID_EXTRA]?.[0];
      const beside = identity.keys.find(({ keyId }) => keyId === own) ?? identity.keys.at(-1);
      const added = { keyId: key.keyId, publicKey: key.publicKey, addedAtMs: nowMs };
      await enrolment.identities.replaceKeys(identity, [...(beside === undefined ? [] : [beside]), added], nowMs);
    }
    const kept = await enrolment.identities.read(nodeName);
    if (kept?.keys.some(({ keyId }) => keyId === key.keyId)) return undefined;
    throw new Error(`other writers change the identity of ${nodeName}`);
  }

  const withCondition = (
    { status = {} }: KubeCertificateSigningRequest,
    type: string,
    more: { readonly reason: string; readonly message: string },
  ): KubeCertificateSigningRequest['status'] => {
    const now = formatTime(clock.nowMs());
    const condition = { type, status: 'True' as const, ...more, lastUpdateTime: now, lastTransitionTime: now };
    return { ...status, conditions: [...(status.conditions ?? []), condition] };
  };

  async function sweepOne(object: KubeCertificateSigningRequest): Promise<void> {
    if (isOutdated(object, clock.nowMs(), endOf(object))) await requests.remove(object);
    else if (stepOf(object).kind !== 'none') await settle(nameOf(object));
  }

  return {
    async onRecords(records) {
      const names = [...new Set(records.map(({ key }) => key.sk))];
      const failed = new Set<string>(names);
      const work = async (name: string): Promise<void> => {
        await settle(name);
        failed.delete(name);
      };
      const { faults } = await workThrough(names, { concurrencyMax: CONCURRENCY_MAX, budget: UNBOUNDED }, work);
      const failedFrom = records.findIndex(({ key }) => failed.has(key.sk));
      return { ...(failedFrom >= 0 && { failedFrom }), faults, postponed: [] };
    },

    async sweep() {
      const faults: unknown[] = [];
      let after: string | undefined;
      for (let page = 0; page < PAGES_MAX; page += 1) {
        const { items, next } = await requests.list({
          namespace: '',
          limit: PAGE,
          ...defined({ continueAfter: after }),
        });
        const outcome = await workThrough(items, { concurrencyMax: CONCURRENCY_MAX, budget: UNBOUNDED }, sweepOne);
        faults.push(...outcome.faults);
        if (next === undefined) break;
        after = next;
      }
      if (faults.length > 0) throw new AggregateError(faults, 'certificate signing requests could not be processed');
    },
  };
}

/** At the start and every hour, as upstream's cleaner. */
export function sweepHourly(sweep: SigningRequests['sweep'], log: Log): () => void {
  const run = (): void =>
    void sweep().catch((error: unknown) => {
      log.error('certificate signing requests were not all processed: the next sweep does it', { error });
    });
  const timer = setInterval(run, SWEEP_MS);
  run();
  return () => clearInterval(timer);
}

const AUTO_APPROVED = 'AutoApproved';
const RIGHT = {
  verb: 'create',
  group: 'certificates.k8s.io',
  resource: 'certificatesigningrequests',
  namespace: '',
  name: '',
} as const;

const nameOf = ({ metadata }: KubeCertificateSigningRequest): string => metadata.name ?? '';

type Author = ReturnType<typeof authorOf>;
/** The server wrote who created the request. */
const authorOf = ({ spec = {} }: KubeCertificateSigningRequest) => ({
  username: spec.username ?? '',
  groups: spec.groups ?? [],
  ...defined({ uid: spec.uid, extra: spec.extra }),
});

/** A machine is known by the key of its token or certificate. Whoever may impersonate may name a key, too. */
function enrolledBy({ username, groups, extra }: Author): EnrolledBy {
  const keyId = extra?.[KEY_ID_EXTRA]?.[0];
  const isMachine = nodeIdentity({ name: username, groups }).kind === 'node';
  if (isMachine && keyId !== undefined) return { kind: 'node', keyId };
  if (groups.includes(BOOTSTRAP_GROUP) && username.startsWith(BOOTSTRAP_USER_PREFIX)) {
    return { kind: 'bootstrapToken', id: username.slice(BOOTSTRAP_USER_PREFIX.length) };
  }
  return { kind: 'user', name: username };
}

/** When the certificate of a request ends. undefined: it has none that can be read. */
function endOf({ status }: KubeCertificateSigningRequest): number | undefined {
  try {
    return new X509Certificate(Buffer.from(status?.certificate ?? '', 'base64')).validToDate.getTime();
  } catch {
    return undefined;
  }
}

/** What a hub needs of its cluster before it serves, with one line on what to do when it does not have it. */
import { StartError } from '../../shared/host/start-error.ts';
import { isJsonObject } from '../../shared/kubernetes/json.ts';
import { CHANGE_READS } from '../../shared/watches/change-read.ts';
import { type Upstream, UpstreamUnreachable } from './upstream.ts';

const ANSWER_MS = 10_000;

/** The ClusterRole of a hub. */
const HUB_ROLE = 'system:nodekeeper:hub';

/**
 * Asks for the changes of roles and bindings, without which a hub authorizes no user.
 *
 * @param hasCopy it may serve without the cluster
 * @returns why the cluster cannot be reached; undefined: it can
 * @throws StartError when the hub is refused, and when the cluster cannot be reached although there is no copy
 */
export async function firstContact(upstream: Upstream, url: string, hasCopy: boolean): Promise<string | undefined> {
  try {
    const answer = await upstream.send(
      {
        method: 'POST',
        path: `/apis/${CHANGE_READS.group}/${CHANGE_READS.version}/${CHANGE_READS.resource}`,
        headers: { accept: 'application/json', 'content-type': 'application/json' },
        body: Buffer.from(JSON.stringify(QUESTION)),
      },
      { timeoutMs: ANSWER_MS },
    );
    const refusal = refusalOf(answer.status, answer.body);
    if (refusal === undefined) return undefined;
    if (refusal.isFinal || !hasCopy) throw new StartError(`--upstream ${url}: ${refusal.why}`);
    return refusal.why;
  } catch (error) {
    if (!(error instanceof UpstreamUnreachable)) throw error;
    if (hasCopy) return error.message;
    const advice = error.message.includes('is not trusted')
      ? 'name the authority of the cluster with --upstream-ca'
      : 'there is no copy yet, so the first start needs the cluster';
    throw new StartError(`--upstream ${url} cannot be reached: ${error.message}; ${advice}`, { cause: error });
  }
}

const QUESTION = {
  apiVersion: `${CHANGE_READS.group}/${CHANGE_READS.version}`,
  kind: CHANGE_READS.kind,
  spec: {
    resources: ['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings'].map((resource) => ({
      group: 'rbac.authorization.k8s.io',
      resource,
      after: '0',
    })),
  },
};

/** `isFinal`: a later attempt would be refused as well. */
function refusalOf(code: number, body: Buffer): { readonly why: string; readonly isFinal: boolean } | undefined {
  const bind = `bind its user to the ClusterRole ${HUB_ROLE}: kubectl create clusterrolebinding hub --clusterrole=${HUB_ROLE} --serviceaccount=NAMESPACE:NAME`;
  switch (code) {
    case 201: {
      const isForbidden = body.includes('"outcome":"forbidden"');
      return isForbidden ? { why: `this hub may not read roles and bindings: ${bind}`, isFinal: true } : undefined;
    }
    case 401:
      return { why: 'the cluster does not accept the token or certificate of this hub (401)', isFinal: true };
    case 403:
      return { why: `this hub may not read changes (403): ${bind}`, isFinal: true };
    case 404:
    case 405:
      return { why: `this is no cluster of Nodekeeper, or one before hubs (${code})`, isFinal: true };
    default:
      return { why: `it answered ${code}${messageIn(body)}`, isFinal: false };
  }
}

function messageIn(body: Buffer): string {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isJsonObject(value) && typeof value['message'] === 'string' ? `: ${value['message']}` : '';
  } catch {
    return '';
  }
}

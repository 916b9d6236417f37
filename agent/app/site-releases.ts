/**
 * The API of the cluster, for those pods of this machine that the hub of a site decides about (decision 0068). The
 * cluster replaces a terminated pod. The hub may have moved it meanwhile. So the hub releases the pod first: before its
 * last phase is reported, and before its deletion is confirmed. Without a release neither is sent, and the loops try
 * again.
 */
import { recordOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import type { KubeApi, KubeRequest } from '../ports/kube-api.ts';
import { isTerminal } from './pods/pod-entry.ts';

export interface SiteReleasesDependencies {
  readonly api: KubeApi;
  /** Whether the hub of a site decides about the pod. */
  readonly isOfSite: (uid: string) => boolean;
  /** Asks the hub. False: it refuses, or does not answer. Never rejects. */
  readonly release: (uid: string) => Promise<boolean>;
  /** Whether the pod is a copy that the cluster does not know yet. Its status is reported when it does. */
  readonly isUnknown: (uid: string) => boolean;
}

export function withSiteReleases({ api, isOfSite, release, isUnknown }: SiteReleasesDependencies): KubeApi {
  return {
    async send(request) {
      const uid = endedUid(request);
      if (uid !== undefined && isOfSite(uid) && !(await release(uid))) {
        return { kind: 'failed', cause: new Error(`the hub of the site has not released the pod with uid ${uid}`) };
      }
      if (isUnknown(metadataUid(request))) return { kind: 'answered', status: 200, body: undefined };
      return api.send(request);
    },
    reconnect: () => api.reconnect(),
  };
}

/** The pod that the request says to have ended. Both requests name its uid (rules/pod-requests.ts). */
function endedUid(request: KubeRequest): string | undefined {
  const { preconditions, status } = recordOf(request.body);
  if (request.method === 'DELETE') return textOf(recordOf(preconditions)['uid']);
  return request.method === 'PATCH' && isTerminal(recordOf(status)) ? metadataUid(request) : undefined;
}

/** '' without one: no pod has it. */
const metadataUid = ({ body }: KubeRequest): string => textOf(recordOf(recordOf(body)['metadata'])['uid']);

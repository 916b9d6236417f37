/**
 * The ServiceAccount of a new pod: its default, its refusals, and the volume with its token.
 * Source: plugin/pkg/admission/serviceaccount/admission.go.
 */
import { MIRROR_POD_ANNOTATION } from '../../access/node-restriction.ts';
import { defined } from '../../defined.ts';
import { DEFAULT_ACCOUNT, ROOT_CA } from '../namespace-contents.ts';
import type { Container, KubeObject, KubePod, KubeServiceAccount, PodSpec, Volume } from '../types.ts';
import { referencesOf } from './pod-references.ts';

/** Where containers find the token, the namespace and the certificates of the API. */
export const TOKEN_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';
const TOKEN_VOLUME_PREFIX = 'kube-api-access-';
/** An hour and 7 seconds, as upstream: the seconds mark tokens of this volume. */
const TOKEN_SECONDS = 3607;
/** Letters and digits of generated names (staging/src/k8s.io/apimachinery/pkg/util/rand). */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;

export const isMirrorPod = ({ metadata }: KubeObject): boolean =>
  metadata.annotations?.[MIRROR_POD_ANNOTATION] !== undefined;

/** Name of the account that a new pod runs as. Undefined for a mirror pod, which has none. */
export const accountNameOf = (pod: KubePod): string | undefined =>
  isMirrorPod(pod) ? undefined : pod.spec?.serviceAccountName || pod.spec?.serviceAccount || DEFAULT_ACCOUNT;

/** Why a new mirror pod is refused. Undefined: it is permitted. */
export function mirrorPodRefusal(pod: KubePod): string | undefined {
  const { serviceAccountName, serviceAccount, volumes = [] } = pod.spec ?? {};
  if (serviceAccountName || serviceAccount) return 'a mirror pod may not reference service accounts';
  const { [MIRROR_POD_ANNOTATION]: _mirror, ...annotations } = pod.metadata.annotations ?? {};
  const references = referencesOf({ metadata: { ...pod.metadata, annotations }, ...defined({ spec: pod.spec }) });
  if (references.some((key) => key.startsWith('secrets/'))) return 'a mirror pod may not reference secrets';
  const sources = volumes.flatMap(({ projected }) => projected?.sources ?? []);
  return sources.some((source) => source.serviceAccountToken !== undefined)
    ? 'a mirror pod may not use ServiceAccountToken volume projections'
    : undefined;
}

/** @param account undefined: it does not exist */
export const accountRefusal = (
  namespace: string,
  name: string,
  account: KubeServiceAccount | undefined,
): string | undefined =>
  account === undefined
    ? `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`
    : undefined;

/**
 * The pod with its account, the image pull secrets of the account, and the volume with its token. The suffix of the
 * volume's name follows from the uid of the pod, which is random.
 */
export function withAccount(pod: KubePod, account: KubeServiceAccount): KubePod {
  const name = accountNameOf(pod);
  if (name === undefined) return pod;
  const spec: PodSpec = { ...pod.spec, serviceAccountName: name, serviceAccount: name };
  const pullSecrets = account.imagePullSecrets ?? [];
  if ((spec.imagePullSecrets ?? []).length === 0 && pullSecrets.length > 0) spec.imagePullSecrets = [...pullSecrets];
  const automounts = spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true;
  return { ...pod, spec: automounts ? withTokenVolume(spec, pod.metadata.uid ?? '') : spec };
}

function withTokenVolume(spec: PodSpec, uid: string): PodSpec {
  const { volumes = [] } = spec;
  const existing = volumes.find(({ name = '' }) => name.startsWith(TOKEN_VOLUME_PREFIX))?.name;
  const name = existing ?? `${TOKEN_VOLUME_PREFIX}${suffixOf(uid)}`;
  const isMounted = ({ volumeMounts }: Container): boolean =>
    (volumeMounts ?? []).some(({ mountPath }) => mountPath === TOKEN_DIRECTORY);
  const mounted = (containers: readonly Container[] | undefined): Container[] | undefined =>
    containers?.map((container) =>
      isMounted(container)
        ? container
        : {
            ...container,
            volumeMounts: [...(container.volumeMounts ?? []), { name, mountPath: TOKEN_DIRECTORY, readOnly: true }],
          },
    );
  const needsVolume = [...(spec.initContainers ?? []), ...(spec.containers ?? [])].some((each) => !isMounted(each));
  if (!needsVolume) return spec;
  return {
    ...spec,
    ...defined({ initContainers: mounted(spec.initContainers), containers: mounted(spec.containers) }),
    ...(existing === undefined ? { volumes: [...volumes, tokenVolume(name)] } : {}),
  };
}

const tokenVolume = (name: string): Volume => ({
  name,
  projected: {
    sources: [
      { serviceAccountToken: { expirationSeconds: TOKEN_SECONDS, path: 'token' } },
      { configMap: { name: ROOT_CA, items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      {
        downwardAPI: {
          items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
        },
      },
    ],
    defaultMode: 420,
  },
});

/** Five letters and digits from the first digits of a uid. */
function suffixOf(uid: string): string {
  const digits = uid.replaceAll('-', '').padEnd(2 * SUFFIX_LENGTH, '0');
  const letters = Array.from({ length: SUFFIX_LENGTH }, (_, index) => {
    const value = Number.parseInt(digits.slice(2 * index, 2 * index + 2), 16);
    return SUFFIX_ALPHABET[(Number.isNaN(value) ? 0 : value) % SUFFIX_ALPHABET.length];
  });
  return letters.join('');
}

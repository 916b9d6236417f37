import { definitions } from '../customresourcedefinitions/descriptions.ts';
import { admission } from './admission.ts';
import { apps } from './apps.ts';
import { autoscaling } from './autoscaling.ts';
import { batch } from './batch.ts';
import { certificates } from './certificates.ts';
import { config } from './config.ts';
import { containers } from './containers.ts';
import { type Descriptions, OF_CONDITIONS, OF_MANY } from './descriptions.ts';
import { events } from './events.ts';
import { leases } from './leases.ts';
import { meta } from './meta.ts';
import { networking } from './networking.ts';
import { nodes } from './nodes.ts';
import { persistentVolumes } from './persistent-volumes.ts';
import { pods } from './pods.ts';
import { policy } from './policy.ts';
import { quotas } from './quotas.ts';
import { rbac } from './rbac.ts';
import { reviews } from './reviews.ts';
import { services } from './services.ts';
import { storage } from './storage.ts';
import { volumes } from './volumes.ts';

const DESCRIPTIONS: Descriptions = {
  ...admission,
  ...apps,
  ...autoscaling,
  ...batch,
  ...certificates,
  ...config,
  ...containers,
  ...definitions,
  ...events,
  ...leases,
  ...meta,
  ...networking,
  ...nodes,
  ...persistentVolumes,
  ...pods,
  ...policy,
  ...quotas,
  ...rbac,
  ...reviews,
  ...services,
  ...storage,
  ...volumes,
};

const PACKAGES = /^io\.k8s\.(api|(apimachinery|apiextensions-apiserver)\.pkg\.apis)\./;

/** The text for a definition of OpenAPI, `io.k8s.api.core.v1.Taint`, or for a field of it; '' for none. */
export function describe(definition: string, field = ''): string {
  const type = definition.replace(PACKAGES, '').replace('.', '/');
  const own = DESCRIPTIONS[type]?.[field] ?? DESCRIPTIONS[twinOf(type)]?.[field];
  if (own !== undefined || field === '') return own ?? '';
  return (type.endsWith('Condition') ? OF_CONDITIONS[field] : undefined) ?? OF_MANY[field] ?? '';
}

/** The type with the same texts: the stable version, the source of a PersistentVolume, the ordinary container. */
const twinOf = (type: string): string =>
  type
    .replace('/v1beta1.', '/v1.')
    .replace('EphemeralContainer', 'Container')
    .replace(/(?<!Persistent)VolumeSource$/, 'PersistentVolumeSource');

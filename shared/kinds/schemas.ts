import { apiVersionOf } from '../kubernetes/normal-form.ts';
import type { GroupVersionKind, StructSchema } from '../kubernetes/schema.ts';
import { agentRelease } from './agent-releases/schema.ts';
import { changeRead } from './changereads/schema.ts';
import { clusterStatus } from './cluster-statuses/schema.ts';
import { customResourceDefinition } from './customresourcedefinitions/schema.ts';
import { decision } from './decisions/schema.ts';
import type { ResourceDescriptor } from './descriptor.ts';
import { bootstrapToken, nodeIdentity } from './identities/schema.ts';
import { nodeMetrics, podMetrics } from './node-metrics/schema.ts';
import { silenceHistogram } from './silence-histograms/schema.ts';
import { sitePolicy } from './site-policies/schema.ts';
import { upstream } from './upstream.ts';

/** Kinds that Kubernetes' sources lack. */
const OTHERS = new Map<string, StructSchema>(
  [
    nodeIdentity,
    bootstrapToken,
    agentRelease,
    decision,
    clusterStatus,
    silenceHistogram,
    sitePolicy,
    changeRead,
    nodeMetrics,
    podMetrics,
    customResourceDefinition,
  ].flatMap((schema) => schema.gvks.map((gvk) => [`${apiVersionOf(gvk)} ${gvk.kind}`, schema] as const)),
);

/** The schema of a kind by its `apiVersion` (`v1`, `coordination.k8s.io/v1`) and `kind`. */
export const schemaOf = (apiVersion: string, kind: string): StructSchema | undefined =>
  OTHERS.get(`${apiVersion} ${kind}`) ?? upstream.kind(apiVersion, kind);

/** The schema of the objects of a resource. @throws Error for a kind without a schema, a fault of ours */
export function schemaFor({
  group,
  version,
  kind,
  custom,
}: GroupVersionKind & Pick<ResourceDescriptor, 'custom'>): StructSchema {
  if (custom !== undefined) return custom.schema;
  const schema = schemaOf(apiVersionOf({ group, version }), kind);
  if (schema === undefined) throw new Error(`no schema for ${apiVersionOf({ group, version })} ${kind}`);
  return schema;
}

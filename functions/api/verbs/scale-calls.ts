/** GET, PUT and PATCH of the scale of a workload. Source: upstream pkg/registry/apps/deployment/storage, ScaleREST. */

import type { Call } from '../../../shared/api/call.ts';
import { selectorText } from '../../../shared/kinds/cells.ts';
import { membersOn, valueOfScale } from '../../../shared/kinds/custom-resources/json-path.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import type { KubeDeployment, KubeObject, KubeReplicationController } from '../../../shared/kinds/types.ts';
import { upstream } from '../../../shared/kinds/upstream.ts';
import { nonNegative } from '../../../shared/kubernetes/causes.ts';
import { type HttpResponse, json, warningHeaders } from '../../../shared/kubernetes/http.ts';
import { numberOf, recordOf, textOf } from '../../../shared/kubernetes/normal-form.ts';
import { patchTransform, type Transform } from '../../../shared/kubernetes/patch/patch.ts';
import { dryRunOf, type OptionsKind } from '../../../shared/kubernetes/request.ts';
import {
  decodeObject,
  fieldValidationOf,
  isPatchType,
  mediaTypeOf,
  PATCH_TYPES,
  refuseOtherKind,
} from '../../../shared/kubernetes/request-body.ts';
import type { LabelSelectorSpec } from '../../../shared/kubernetes/selectors.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { admitWrite } from '../admission/admit-write.ts';
import type { ServeDependencies } from '../dependencies.ts';
import { trackingOf } from './managed-fields.ts';
import { modifyObject } from './modify-object.ts';
import { readObject } from './read-object.ts';

const SCALE = { group: 'autoscaling', version: 'v1', kind: 'Scale' } as const;
const EXPECTED = { apiVersion: 'autoscaling/v1', kind: SCALE.kind } as const;
/** Apply patches are not served here: no client is known that sends one. */
const SCALE_PATCH_TYPES = PATCH_TYPES.filter((type) => type !== 'application/apply-patch+yaml');
const STRATEGIC_PATCH = 'application/strategic-merge-patch+json';
const CUSTOM_PATCH_TYPES = SCALE_PATCH_TYPES.filter((type) => type !== STRATEGIC_PATCH);

interface Scale extends KubeObject {
  spec?: { replicas?: number };
}

/** A ReplicationController selects by labels alone. */
function selectorOf(descriptor: ResourceDescriptor, object: KubeDeployment): string {
  if (descriptor.custom !== undefined)
    return textOf(valueOfScale(descriptor.custom.scale?.labelSelectorPath ?? '', object));
  const { spec = {} } = object;
  if (descriptor.group === '') {
    const { selector }: NonNullable<KubeReplicationController['spec']> = spec as KubeReplicationController['spec'] &
      object;
    return selectorText(selector === undefined ? {} : { matchLabels: selector });
  }
  const { selector } = spec as { selector?: LabelSelectorSpec };
  return selectorText(selector);
}

const WORKLOAD_PATHS = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' };
const pathsOf = ({ custom }: ResourceDescriptor) => custom?.scale ?? WORKLOAD_PATHS;

function withPath(value: unknown, [name, ...rest]: readonly string[], replicas: number): unknown {
  if (name === undefined) return replicas;
  const record = recordOf(value);
  return { ...record, [name]: withPath(record[name], rest, replicas) };
}

/** The scale of a workload. Fields that are zero are absent, as in Go. */
function scaleOf(descriptor: ResourceDescriptor, object: KubeDeployment): Scale {
  const { name = '', namespace = '', uid = '', resourceVersion = '', creationTimestamp = null } = object.metadata;
  const { specReplicasPath, statusReplicasPath } = pathsOf(descriptor);
  const replicas = numberOf(valueOfScale(specReplicasPath, object)) ?? 0;
  const selector = selectorOf(descriptor, object);
  return {
    kind: SCALE.kind,
    apiVersion: EXPECTED.apiVersion,
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: replicas === 0 ? {} : { replicas },
    status: {
      replicas: numberOf(valueOfScale(statusReplicasPath, object)) ?? 0,
      ...(selector === '' ? {} : { selector }),
    },
  };
}

export async function getScale(dependencies: ServeDependencies, { descriptor, target }: Call): Promise<HttpResponse> {
  const object = await dependencies.storageOf(descriptor).get(target.namespace, target.name);
  if (object === undefined) throw status.notFound(descriptor, target.name);
  return json(200, scaleOf(descriptor, object));
}

export async function updateScale(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { request } = call;
  const read = await readObject(request.headers, request.body, EXPECTED);
  const { object, warnings } = decodeObject(
    SCALE,
    upstream.struct('autoscaling/v1.Scale'),
    read,
    fieldValidationOf(request.query, 'UpdateOptions'),
  );
  refuseOtherKind(SCALE.kind, object);
  return modifyScale(dependencies, call, {
    change: async () => object,
    kind: 'UpdateOptions',
    warnings: () => warnings,
  });
}

export function patchScale(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { request, target, descriptor } = call;
  const type = mediaTypeOf(request.headers);
  const isCustom = descriptor.custom !== undefined;
  if (!isPatchType(type) || type === 'application/apply-patch+yaml' || (isCustom && type === STRATEGIC_PATCH)) {
    throw status.unsupportedMediaType(isCustom ? CUSTOM_PATCH_TYPES : SCALE_PATCH_TYPES);
  }
  const validation = fieldValidationOf(request.query, 'PatchOptions');
  const scaled = { ...descriptor, ...SCALE };
  const { transform, warnings } = patchTransform(
    scaled,
    upstream.struct('autoscaling/v1.Scale'),
    target.name,
    type,
    request.body,
    validation,
  );
  return modifyScale(dependencies, call, { change: transform, kind: 'PatchOptions', warnings });
}

interface ScaleChange {
  /** The next scale from the current one. */
  readonly change: Transform;
  readonly kind: OptionsKind;
  readonly warnings: () => readonly string[];
}

async function modifyScale(
  dependencies: ServeDependencies,
  call: Call,
  { change, kind, warnings }: ScaleChange,
): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const transform: Transform = async (old) => {
    const next: Scale = await change(scaleOf(descriptor, old));
    const { name = target.name, uid = '', resourceVersion = '' } = next.metadata;
    if (name !== target.name) throw status.nameMismatch(name, target.name);
    const replicas = next.spec?.replicas ?? 0;
    const causes = nonNegative('spec.replicas', replicas);
    if (causes.length > 0) throw status.invalid(SCALE, target.name, causes);
    const metadata = {
      ...old.metadata,
      ...(uid === '' ? {} : { uid }),
      ...(resourceVersion === '' ? {} : { resourceVersion }),
    };
    const { specReplicasPath } = pathsOf(descriptor);
    return { ...(withPath(old, membersOn(specReplicasPath), replicas) as KubeObject), metadata };
  };
  const verb = kind === 'UpdateOptions' ? 'update' : 'patch';
  const { mutate: _mutate, admit, ...admission } = admitWrite(dependencies, call, verb, { kind: SCALE });
  // Policies see the scale. What they would change in it is not kept.
  const scaled = (object: KubeObject | undefined) => (object === undefined ? undefined : scaleOf(descriptor, object));
  const written = await modifyObject(dependencies, descriptor, { ...target, subresource: '' }, transform, {
    nowMs: call.nowMs,
    dryRun: dryRunOf(request.query, kind),
    replaces: false,
    ...trackingOf(call, dependencies.storageOf(descriptor), kind),
    ...admission,
    admit: async (next, stored) => admit?.(scaled(next), scaled(stored)),
  });
  return json(200, scaleOf(descriptor, written.object), warningHeaders([...warnings(), ...admission.warnings()]));
}

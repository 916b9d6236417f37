/** GET, PUT and PATCH of the scale of a workload. Source: upstream pkg/registry/apps/deployment/storage, ScaleREST. */

import type { Call } from '../../../shared/api/call.ts';
import { shapeObject } from '../../../shared/api/response-body.ts';
import { ageOf, integerColumn, nameOf, selectorText } from '../../../shared/kinds/cells.ts';
import { membersOn, valueOfScale } from '../../../shared/kinds/custom-resources/json-path.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { storedAs } from '../../../shared/kinds/registry.ts';
import { schemaFor } from '../../../shared/kinds/schemas.ts';
import type { KubeDeployment, KubeObject, KubeReplicationController } from '../../../shared/kinds/types.ts';
import { upstream } from '../../../shared/kinds/upstream.ts';
import { nonNegative } from '../../../shared/kubernetes/causes.ts';
import { ageColumn, nameColumn } from '../../../shared/kubernetes/columns.ts';
import { type HttpResponse, json, warningHeaders } from '../../../shared/kubernetes/http.ts';
import { isJsonObject } from '../../../shared/kubernetes/json.ts';
import { numberOf, recordOf, textOf } from '../../../shared/kubernetes/normal-form.ts';
import { patchTransform, type Transform } from '../../../shared/kubernetes/patch/patch.ts';
import { dryRunOf, type OptionsKind } from '../../../shared/kubernetes/request.ts';
import { decodeObject, fieldValidationOf, refuseOtherKind } from '../../../shared/kubernetes/request-body.ts';
import type { LabelSelectorSpec } from '../../../shared/kubernetes/selectors.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { admitWrite } from '../admission/admit-write.ts';
import type { ServeDependencies } from '../dependencies.ts';
import {
  applied,
  checkApplyOptions,
  loadApply,
  readApplyBody,
  trackingOf,
  undeclared,
  writerOf,
} from './managed-fields.ts';
import { modifyObject } from './modify-object.ts';
import { readObject } from './read-object.ts';
import { patchTypeOf } from './write-calls.ts';

const SCALE = { group: 'autoscaling', version: 'v1', kind: 'Scale' } as const;
const SCALE_SCHEMA = upstream.struct('autoscaling/v1.Scale');
const EXPECTED = { apiVersion: 'autoscaling/v1', kind: SCALE.kind } as const;

interface Scale extends KubeObject {
  spec?: { replicas?: number };
  status?: { replicas?: number };
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

const columns = [
  nameColumn,
  integerColumn('Desired', 'Replicas that are wanted.'),
  integerColumn('Available', 'Replicas that exist.'),
  ageColumn,
];

/** In the form that the client asked for. Source of the table: upstream pkg/printers/internalversion/printers.go. */
function shaped({ descriptor, shape, nowMs }: Call, object: KubeObject): unknown {
  const { servedFrom: _servedFrom, ...own } = descriptor;
  const row = (scale: Scale) => [
    nameOf(scale),
    scale.spec?.replicas ?? 0,
    scale.status?.replicas ?? 0,
    ageOf(scale, nowMs),
  ];
  return shapeObject({ ...own, columns, row }, scaleOf(descriptor, object), shape, nowMs);
}

export async function getScale(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target } = call;
  const object = await dependencies.storageOf(descriptor).get(target.namespace, target.name);
  if (object === undefined) throw status.notFound(descriptor, target.name);
  return json(200, shaped(call, object));
}

export async function updateScale(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { request } = call;
  const read = await readObject(request.headers, request.body, EXPECTED);
  const { object, warnings } = decodeObject(
    SCALE,
    SCALE_SCHEMA,
    read,
    fieldValidationOf(request.query, 'UpdateOptions'),
  );
  refuseOtherKind(SCALE.kind, object);
  return modifyScale(dependencies, call, {
    transform: throughScale(call, async () => object),
    kind: 'UpdateOptions',
    warnings: () => warnings,
  });
}

export async function patchScale(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { request, descriptor } = call;
  const type = patchTypeOf(call);
  const isApply = type === 'application/apply-patch+yaml';
  const { force } = checkApplyOptions(request.query, isApply);
  if (isApply) return applyScale(dependencies, call, force);
  const validation = fieldValidationOf(request.query, 'PatchOptions');
  const scaled = { ...descriptor, ...SCALE };
  const { transform, warnings } = patchTransform(scaled, SCALE_SCHEMA, type, request.body, validation);
  return modifyScale(dependencies, call, { transform: throughScale(call, transform), kind: 'PatchOptions', warnings });
}

/** The applied scale is an apply of the replicas alone to the workload. */
async function applyScale(dependencies: ServeDependencies, call: Call, force: boolean): Promise<HttpResponse> {
  const { request, target } = call;
  const descriptor = storedAs(call.descriptor);
  const { applied: value, duplicates } = await readApplyBody(request.body, dependencies.readYaml);
  if (!isJsonObject(value)) throw status.badRequest('an apply configuration must be an object');
  const validation = fieldValidationOf(request.query, 'PatchOptions');
  const { object, unknownFields, warnings } = decodeObject(SCALE, SCALE_SCHEMA, { value, duplicates }, validation);
  refuseOtherKind(SCALE.kind, object);
  // As in every apply. Without the field, the manager would give up the replicas.
  if (unknownFields.length > 0) throw status.badRequest(undeclared(SCALE, object, unknownFields));
  const settings = {
    applyServerSide: await loadApply(),
    descriptor,
    schema: schemaFor(descriptor),
    writer: writerOf(call, 'PatchOptions'),
    force,
    validation,
    ignored: [],
    within: [],
    isTracked: true,
  };
  // Where replicas are absent, the manager gives up what it had applied. A zero is a value.
  const replicas = numberOf(recordOf(value['spec'])['replicas']);
  const members = membersOn(pathsOf(descriptor).specReplicasPath);
  const configuration = replicas === undefined ? {} : withPath({}, members, replicas);
  const transform: Transform = (old) => {
    const metadata = checkedMetadata(target.name, old, object);
    refuseNegative(target.name, replicas ?? 0);
    return applied(settings, { applied: configuration, duplicates: [] }, { ...old, metadata }).object;
  };
  return modifyScale(dependencies, call, { transform, kind: 'PatchOptions', warnings: () => warnings, isApply: true });
}

/** The metadata of the workload, with the uid and the version that the scale names: conditions of the write. */
function checkedMetadata(expectedName: string, old: KubeObject, scale: KubeObject): KubeObject['metadata'] {
  const { name = expectedName, uid = '', resourceVersion = '' } = scale.metadata;
  if (name !== expectedName) throw status.nameMismatch(name, expectedName);
  return { ...old.metadata, ...(uid === '' ? {} : { uid }), ...(resourceVersion === '' ? {} : { resourceVersion }) };
}

function refuseNegative(name: string, replicas: number): void {
  const causes = nonNegative('spec.replicas', replicas);
  if (causes.length > 0) throw status.invalid(SCALE, name, causes);
}

/** @param change the next scale from the current one */
function throughScale({ descriptor, target }: Call, change: Transform): Transform {
  return async (old) => {
    const next: Scale = await change(scaleOf(descriptor, old));
    const metadata = checkedMetadata(target.name, old, next);
    const replicas = next.spec?.replicas ?? 0;
    refuseNegative(target.name, replicas);
    const { specReplicasPath } = pathsOf(descriptor);
    return { ...(withPath(old, membersOn(specReplicasPath), replicas) as KubeObject), metadata };
  };
}

interface ScaleChange {
  /** The next workload from the current one. */
  readonly transform: Transform;
  readonly kind: OptionsKind;
  readonly warnings: () => readonly string[];
  /** True: the workload from `transform` has its managedFields. */
  readonly isApply?: boolean;
}

async function modifyScale(
  dependencies: ServeDependencies,
  call: Call,
  { transform, kind, warnings, isApply = false }: ScaleChange,
): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const verb = kind === 'UpdateOptions' ? 'update' : 'patch';
  const { mutate: _mutate, admit, ...admission } = admitWrite(dependencies, call, verb, { kind: SCALE });
  // Policies see the scale. What they would change in it is not kept.
  const scaled = (object: KubeObject | undefined) => (object === undefined ? undefined : scaleOf(descriptor, object));
  const written = await modifyObject(dependencies, descriptor, { ...target, subresource: '' }, transform, {
    nowMs: call.nowMs,
    dryRun: dryRunOf(request.query, kind),
    replaces: false,
    ...(isApply ? {} : trackingOf(call, dependencies.storageOf(descriptor), kind)),
    ...admission,
    admit: async (next, stored) => admit?.(scaled(next), scaled(stored)),
  });
  return json(200, shaped(call, written.object), warningHeaders([...warnings(), ...admission.warnings()]));
}

import { withoutEmpty, withoutNulls } from '../../kubernetes/normal-form.ts';
import { defaultTemplate, withTemplateLabels } from '../pods/spec-defaults.ts';
import { type Prepare, preparesStatus } from '../served-kind.ts';
import type { KubeReplicationController, ReplicaSetSpec, ReplicationControllerSpec } from '../types.ts';
import { REPLICA_SETS, REPLICATION_CONTROLLERS } from './resource.ts';

const EMPTY_STATUS = { emptyStatus: { replicas: 0 } };

function storedSetSpec(given: ReplicaSetSpec = {}): ReplicaSetSpec {
  const spec = withoutNulls(given);
  return withoutEmpty({ replicas: 1, ...spec, template: defaultTemplate(spec.template) }, 'minReadySeconds');
}

export const prepareReplicaSet = preparesStatus(REPLICA_SETS, storedSetSpec, EMPTY_STATUS);

/** Without a selector, the labels of the template select the pods. Source: pkg/apis/core/v1/defaults.go. */
function storedControllerSpec(given: ReplicationControllerSpec = {}): ReplicationControllerSpec {
  const spec = withoutNulls(given);
  const labels = spec.template?.metadata?.labels ?? {};
  const own = spec.selector ?? {};
  const selector = Object.keys(own).length > 0 ? own : labels;
  const template = spec.template === undefined ? {} : { template: defaultTemplate(spec.template) };
  return withoutEmpty({ replicas: 1, ...spec, selector, ...template }, 'selector', 'minReadySeconds');
}

const prepared = preparesStatus(REPLICATION_CONTROLLERS, storedControllerSpec, EMPTY_STATUS);

/** Source: pkg/apis/core/v1/defaults.go. */
const withLabels = (object: KubeReplicationController): KubeReplicationController =>
  withTemplateLabels(object, object.spec?.template);

export const prepareReplicationController: Prepare = {
  ...prepared,
  prepareForCreate: (object, context) => prepared.prepareForCreate(withLabels(object), context),
  prepareForUpdate: (next, old, context) =>
    prepared.prepareForUpdate(context.subresource === '' ? withLabels(next) : next, old, context),
};

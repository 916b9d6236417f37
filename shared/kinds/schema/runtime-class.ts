import { metadata } from '../../kubernetes/schema/meta.ts';
import {
  atomicTextMap,
  kindStruct,
  list,
  optionalStruct,
  required,
  resourceList,
  type StructSchema,
  struct,
  text,
} from '../../kubernetes/schema/schema.ts';
import { toleration } from './pod.ts';

const NODE = 'io.k8s.api.node.v1';

const overhead = struct(`${NODE}.Overhead`, 'Resources that a runtime needs for each pod.', {
  podFixed: resourceList('Amounts by resource name.'),
});

const scheduling = struct(`${NODE}.Scheduling`, 'Nodes that support a runtime.', {
  nodeSelector: atomicTextMap('Labels of these nodes.'),
  tolerations: list(toleration, 'Tolerations that pods of the class have in addition.'),
});

export const runtimeClass: StructSchema = kindStruct(
  `${NODE}.RuntimeClass`,
  { group: 'node.k8s.io', version: 'v1', kind: 'RuntimeClass' },
  'RuntimeClass defines a class of container runtime supported in the cluster.',
  {
    metadata,
    handler: required(text("Name of the runtime's configuration on the nodes.")),
    overhead: optionalStruct(overhead, 'Resources that the runtime needs for each pod.'),
    scheduling: optionalStruct(scheduling, 'Nodes that support the runtime.'),
  },
);

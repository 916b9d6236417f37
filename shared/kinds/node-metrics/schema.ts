/** metrics.k8s.io/v1beta1. Source: staging/src/k8s.io/metrics/pkg/apis/metrics/v1beta1/types.go. */

import {
  always,
  kindStruct,
  list,
  resourceList,
  type StructSchema,
  struct,
  text,
  time,
} from '../../kubernetes/schema.ts';
import { metadata } from '../upstream.ts';
import { METRICS_GROUP } from './serve.ts';

const PREFIX = 'io.k8s.metrics.pkg.apis.metrics.v1beta1';
const gvk = (kind: string) => ({ group: METRICS_GROUP, version: 'v1beta1', kind });

const measured = {
  timestamp: always(time('End of the interval in which the use was measured.')),
  window: always(text('Length of the interval, such as 1m0s.')),
};

export const nodeMetrics: StructSchema = kindStruct(
  `${PREFIX}.NodeMetrics`,
  gvk('NodeMetrics'),
  'CPU and memory that a node used, as its agent reported with its heartbeats.',
  { metadata, ...measured, usage: always(resourceList('CPU in cores, and memory of the working set.')) },
);

const containerMetrics = struct(`${PREFIX}.ContainerMetrics`, 'What one container used.', {
  name: always(text('Name of the container.')),
  usage: always(resourceList('CPU in cores, and memory of the working set.')),
});

export const podMetrics: StructSchema = kindStruct(
  `${PREFIX}.PodMetrics`,
  gvk('PodMetrics'),
  'CPU and memory that the containers of a pod used. Agents do not report it.',
  { metadata, ...measured, containers: always(list(containerMetrics, 'Its containers.')) },
);

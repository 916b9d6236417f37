import { expect, it } from 'vitest';
import { metricsText } from '../functions/api/metrics/open-metrics.ts';
import { processMetrics } from './process-metrics.ts';

it('shows readings that have a value, and each metric of a function by its last value and its sum', () => {
  const metrics = processMetrics();
  metrics.readAlso([
    { name: 'nodekeeper_held_watches', help: 'Watches.', type: 'gauge', read: () => 3 },
    { name: 'nodekeeper_absent', help: 'Nothing.', type: 'gauge', read: () => undefined },
  ]);
  metrics.add('failed_ticks', 1, 'Count', { service: 'all' });
  metrics.add('failed_ticks', 2, 'Count', { service: 'all' });
  metrics.add('workload_pods_created_total', 3, 'Count', { kind: 'ReplicaSet' });
  expect(
    metricsText(metrics.families(), 'text')
      .split('\n')
      .filter((line) => !line.startsWith('#') && line !== ''),
  ).toEqual([
    'nodekeeper_held_watches 3',
    'nodekeeper_function_failed_ticks_last{service="all"} 2',
    'nodekeeper_function_failed_ticks_total{service="all"} 3',
    'nodekeeper_function_workload_pods_created_last{kind="ReplicaSet"} 3',
    'nodekeeper_function_workload_pods_created_total{kind="ReplicaSet"} 3',
  ]);
});

it('keeps a bounded number of series', () => {
  const metrics = processMetrics();
  for (let index = 0; index < 2_000; index += 1) metrics.add('m', 1, 'Count', { zone: `z${index}` });
  expect(metrics.families()[0]?.samples).toHaveLength(1_000);
});

import { storedResource } from '../stored-resource.ts';
import type { KubeJob } from '../types.ts';

export const JOBS = storedResource({
  group: 'batch',
  resource: 'jobs',
  kind: 'Job',
  scope: 'namespaced',
  selectableFields: { 'status.successful': (object: KubeJob) => String(object.status?.succeeded ?? 0) },
});

export const CRON_JOBS = storedResource({
  group: 'batch',
  resource: 'cronjobs',
  kind: 'CronJob',
  scope: 'namespaced',
});

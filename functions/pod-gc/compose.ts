import { createHash } from 'node:crypto';
import { composeCloud } from '../../shared/aws/cloud.ts';
import { composeDependencies, type Environment } from '../../shared/aws/controllers.ts';
import { loadConfig, podGcConfig } from '../../shared/config/environment.ts';
import { podGcDependencies } from './dependencies.ts';
import { runPodGc } from './work.ts';

export function composePodGc(environment: Environment) {
  const config = loadConfig(podGcConfig, environment);
  const dependencies = podGcDependencies(composeDependencies(environment, config), {
    cloud: composeCloud(environment, config),
    sha256: (text) => createHash('sha256').update(text).digest('hex'),
  });
  return {
    policy: config.policy,
    tick: (slot: number, budgetMs: number) => runPodGc(dependencies, { slot, budgetMs }),
  };
}

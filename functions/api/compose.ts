import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { AccessEntry } from '../../shared/access/access-entry.ts';
import { accountTokenIssuer, accountTokens } from '../../shared/access/account-tokens.ts';
import { apiAuthorities } from '../../shared/access/api-authorities.ts';
import { bearerSchemes, staticTokenAuthenticator } from '../../shared/access/bearer.ts';
import { bootstrapTokens } from '../../shared/access/bootstrap-token.ts';
import { bootstrapTokenStore } from '../../shared/access/bootstrap-token-store.ts';
import { nodeKeys } from '../../shared/access/node-key-store.ts';
import { nodeTokens } from '../../shared/access/node-tokens.ts';
import { accountKeys, keepAccountKey, keepTicketKey, probeKeys } from '../../shared/access/process-key-store.ts';
import { processKeys } from '../../shared/access/process-keys.ts';
import { readPublicKey } from '../../shared/access/public-keys.ts';
import { API_LIMITS, systemBusyMs } from '../../shared/access/request-throttle.ts';
import { watchTicketIssuer } from '../../shared/access/watch-tickets.ts';
import { behindFence } from '../../shared/api/move-door.ts';
import { redirectWatches } from '../../shared/api/watch/watch-redirect.ts';
import type { CloudScope } from '../../shared/aws/cloud.ts';
import type { Environment } from '../../shared/aws/controllers.ts';
import { loadOnDemand } from '../../shared/aws/load-on-demand.ts';
import { composeServing } from '../../shared/aws/serving.ts';
import { systemClock } from '../../shared/clock.ts';
import { accessEntriesFromJson } from '../../shared/config/access-entries.ts';
import { apiConfig, loadConfig } from '../../shared/config/environment.ts';
import type { Cloud } from '../../shared/fleet/instances/cloud.ts';
import { clusterObjects } from '../../shared/kinds/resources.ts';
import type { ReadYaml } from '../../shared/kubernetes/request-body.ts';
import { instanceIdentities } from './access/instance-identities.ts';
import { INSTANCE_AGE_SECONDS_MAX } from './access/instance-identity.ts';
import { callerIdentityTokens } from './caller-identity.ts';
import { redirectLogs } from './logs/log-redirect.ts';
import { auditLogConnectionFrom, cloudWatchAuditTrail } from './put-log-events.ts';
import { type ApiOptions, composeApi } from './work.ts';

/** How long a revoked key is still accepted by the API. */
const KEYS_LIVE_MS = 60_000;

export function composeApiFunction(environment: Environment) {
  const config = loadConfig(apiConfig, environment);
  const { clusterId } = config;
  const serving = composeServing(environment, config);
  const { items, log } = serving;
  const objects = clusterObjects(serving);
  const api = composeApi({
    ...serving,
    clusterId,
    tablesName: environment['OBJECTS_TABLE'] ?? '',
    hash: (text) => createHash('sha256').update(text).digest('hex').slice(0, 32),
    accountTokens: { issuer: accountTokenIssuer(keepAccountKey(items), log), keys: accountKeys(items) },
    authenticator: bearerSchemes(
      [
        accountTokens({ keys: accountKeys(items), find: (ref) => objects.get(ref) }),
        nodeTokens({ keys: nodeKeys(items), probeKeys: probeKeys(items), clusterId, keysLiveMs: KEYS_LIVE_MS }),
        bootstrapTokens(bootstrapTokenStore(items)),
        ...(config.instances === undefined
          ? []
          : [
              instanceIdentities({
                ...config.instances,
                ageSecondsMax: INSTANCE_AGE_SECONDS_MAX,
                publicKey: readFileSync(new URL('instance-identity-key.txt', import.meta.url), 'utf8'),
              }),
            ]),
        callerIdentityTokens({ clusterId, entries: accessEntriesOf(config) }),
      ],
      staticTokenAuthenticator(config.staticTokens),
    ),
    readPublicKey,
    apiAuthorities,
    readYaml: readYamlOnDemand,
    ...(config.instances === undefined ? {} : { cloud: ec2OnDemand(environment, { clusterId, ...config.instances }) }),
    auditTrail: cloudWatchAuditTrail(auditLogConnectionFrom(environment, config.auditLog), systemClock.nowMs),
    limits: API_LIMITS,
    busyMs: systemBusyMs,
    ...(config.watchUrl === undefined ? {} : streamedBy(config.watchUrl, serving)),
  });
  return behindFence(api, { items, nowMs: systemClock.nowMs });
}

/** Watches and logs, redirected to the streaming function. */
function streamedBy(
  watchUrl: string,
  { items, log, random }: Pick<ApiOptions, 'items' | 'log' | 'random'>,
): Pick<ApiOptions, 'answerPodLog' | 'answerWatch'> {
  const tickets = watchTicketIssuer(processKeys(keepTicketKey(items), log));
  return {
    answerWatch: redirectWatches(watchUrl, tickets),
    answerPodLog: redirectLogs({ watchUrl, tickets }, { items, random }),
  };
}

const accessEntriesOf = ({ accessEntriesFile }: { readonly accessEntriesFile?: string }): readonly AccessEntry[] =>
  accessEntriesFile === undefined
    ? []
    : accessEntriesFromJson(readFileSync(new URL(accessEntriesFile, import.meta.url), 'utf8'));

/** The parser is a tenth of this function, and kubectl applies JSON. It is loaded with the first patch in YAML. */
const readYamlOnDemand: ReadYaml = async (text) => (await import('./read-yaml.ts')).readYaml(text);

/** EC2's client is as large as the rest of this function. It is loaded when the first instance enrols. */
function ec2OnDemand(environment: Environment, scope: CloudScope): Pick<Cloud, 'describeInstances'> {
  const loaded = loadOnDemand(async () => (await import('../../shared/aws/cloud.ts')).composeCloud(environment, scope));
  return { describeInstances: async (instances) => (await loaded()).describeInstances(instances) };
}

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { auditLogConnectionFrom, cloudWatchAuditTrail } from '../../shared/adapters/aws-json/put-log-events.ts';
import { accountTokenIssuer, accountTokens } from '../../shared/adapters/tokens/account-tokens.ts';
import { bearerSchemes } from '../../shared/adapters/tokens/bearer.ts';
import { bootstrapTokens } from '../../shared/adapters/tokens/bootstrap-tokens.ts';
import { callerIdentityTokens } from '../../shared/adapters/tokens/caller-identity.ts';
import { instanceIdentities } from '../../shared/adapters/tokens/instance-identities.ts';
import { nodeTokens } from '../../shared/adapters/tokens/node-tokens.ts';
import { processKeys } from '../../shared/adapters/tokens/process-keys.ts';
import { readPublicKey } from '../../shared/adapters/tokens/public-keys.ts';
import { staticTokenAuthenticator } from '../../shared/adapters/tokens/static-tokens.ts';
import { watchTicketIssuer } from '../../shared/adapters/tokens/watch-tickets.ts';
import { apiAuthorities } from '../../shared/adapters/trust/api-authorities.ts';
import { type ApiOptions, composeApi } from '../../shared/api/compose.ts';
import { redirectLogs } from '../../shared/api/logs/log-redirect.ts';
import type { ReadYaml } from '../../shared/api/request/yaml-body.ts';
import { clusterObjects } from '../../shared/api/storage/cluster-objects.ts';
import { redirectWatches } from '../../shared/api/watch/watch-redirect.ts';
import { accessEntriesFromJson } from '../../shared/config/access-entries.ts';
import { apiConfig, loadConfig } from '../../shared/config/environment.ts';
import type { AccessEntry } from '../../shared/domain/access/access-entry.ts';
import { INSTANCE_AGE_SECONDS_MAX } from '../../shared/domain/access/instance-identity.ts';
import { API_LIMITS } from '../../shared/kube/request/request-throttle.ts';
import type { Cloud } from '../../shared/ports/cloud.ts';
import { bootstrapTokenStore } from '../../shared/store/bootstrap-token-store.ts';
import { nodeKeys } from '../../shared/store/node-key-store.ts';
import { accountKeys, keepAccountKey, keepTicketKey, probeKeys } from '../../shared/store/process-key-store.ts';
import type { CloudScope } from '../cloud.ts';
import type { Environment } from '../controllers.ts';
import { loadOnDemand } from '../load-on-demand.ts';
import { composeServing } from '../serving.ts';
import { systemBusyMs, systemClock } from '../system-clock.ts';

/** How long a revoked key is still accepted by the API. */
const KEYS_LIVE_MS = 60_000;

export function composeApiFunction(environment: Environment) {
  const config = loadConfig(apiConfig, environment);
  const { clusterId } = config;
  const serving = composeServing(environment, config);
  const { items, log } = serving;
  const objects = clusterObjects(serving);
  return composeApi({
    ...serving,
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
const readYamlOnDemand: ReadYaml = async (text) =>
  (await import('../../shared/adapters/yaml/read-yaml.ts')).readYaml(text);

/** EC2's client is as large as the rest of this function. It is loaded when the first instance enrols. */
function ec2OnDemand(environment: Environment, scope: CloudScope): Pick<Cloud, 'describeInstances'> {
  const loaded = loadOnDemand(async () => (await import('../cloud.ts')).composeCloud(environment, scope));
  return { describeInstances: async (instances) => (await loaded()).describeInstances(instances) };
}

import { clientOptionsFrom } from '../../shared/adapters/dynamodb/client.ts';
import { leanUpdater } from '../../shared/adapters/dynamodb/lean-updater.ts';
import { systemClock, systemRandom } from '../../shared/adapters/system/clock.ts';
import { probeTokenOf, staticTokenAuthenticator } from '../../shared/adapters/tokens/static-tokens.ts';
import { serveHeartbeat } from '../../shared/app/renew-lease.ts';
import { loadHeartbeatConfig } from '../../shared/config/heartbeat-environment.ts';
import { log } from '../../shared/observability/logger.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export function composeHeartbeat(environment: Environment) {
  const config = loadHeartbeatConfig(environment);
  return serveHeartbeat({
    items: leanUpdater({
      connection: clientOptionsFrom(environment),
      tables: { health: config.tables.health },
      nowMs: systemClock.nowMs,
      random: systemRandom.fraction,
    }),
    authenticator: staticTokenAuthenticator([...config.staticTokens, probeTokenOf(config.probeToken)]),
    clock: systemClock,
    random: systemRandom,
    log,
  });
}

import { gunzip } from '../../shared/adapters/gzip/gzip.ts';
import { staticTokenAuthenticator } from '../../shared/adapters/tokens/static-tokens.ts';
import { watchTicketVerifier } from '../../shared/adapters/tokens/watch-tickets.ts';
import { serveWatch } from '../../shared/api/watch/serve-watch.ts';
import { loadConfig, watchConfig } from '../../shared/config/environment.ts';
import { nodeKeys } from '../../shared/store/node-key-store.ts';
import { ticketKeys } from '../../shared/store/process-key-store.ts';
import type { Environment } from '../controllers.ts';
import { composeServing } from '../serving.ts';

export function composeWatch(environment: Environment) {
  const config = loadConfig(watchConfig, environment);
  const serving = composeServing(environment, config);
  return serveWatch({
    ...serving,
    gunzip,
    authenticator: staticTokenAuthenticator(config.staticTokens),
    tickets: watchTicketVerifier(ticketKeys(serving.items)),
    nodeKeys: nodeKeys(serving.items),
  });
}

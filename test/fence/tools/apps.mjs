import { createServer } from "node:http";
import { once } from "node:events";
import express from "express";
import { fastify } from "fastify";
import { Hono } from "hono";
import { guard, guardExpress, guardFastify, guardHono } from "@leasehold/fence/http";

/**
 * For each framework, a server of one resource, `PUT /`: its handler calls `write(token)`, which may throw.
 */
export const apps = {
  fetch: async (write, options) => {
    const put = guard(async (_, token) => {
      await write(token);
      return new Response(null, { status: 204 });
    }, options);
    return served(serving(put));
  },
  hono: async (write, options) => {
    const app = new Hono();
    app.put(
      "/",
      guardHono(async (context, token) => {
        await write(token);
        return context.body(null, 204);
      }, options),
    );
    app.onError((_, context) => context.text("wrong", 500));
    return served(serving(app.fetch));
  },
  express: async (write, options) => {
    const app = express();
    app.put(
      "/",
      guardExpress(async (_, response, token) => {
        await write(token);
        response.sendStatus(204);
      }, options),
    );
    app.use((_error, _request, response, _next) => response.status(500).end("wrong"));
    return served(app);
  },
  fastify: async (write, options) => {
    const app = fastify();
    app.put(
      "/",
      guardFastify(async (_, reply, token) => {
        await write(token);
        return reply.code(204).send();
      }, options),
    );
    app.setErrorHandler((_, _request, reply) => reply.code(500).send("wrong"));
    await app.listen({ port: 0, host: "127.0.0.1" });
    return { port: app.server.address().port, close: () => app.close() };
  },
};

async function served(listener) {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: server.address().port,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Runs a fetch-style handler on Node's server. */
function serving(handle) {
  return async (request, response) => {
    const headers = Object.entries(request.headersDistinct).flatMap(([name, values]) =>
      values.map((value) => [name, value]),
    );
    try {
      const url = `http://${request.headers.host}${request.url}`;
      const answer = await handle(new Request(url, { method: request.method, headers }));
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      response.end(await answer.text());
    } catch {
      response.writeHead(500).end("wrong");
    }
  };
}

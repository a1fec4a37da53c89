# Switchboard in a container: docker build -t switchboard . ; how to run it: compose.yaml, docs/deploy.md.
FROM node:24-slim AS build
WORKDIR /switchboard
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY web web
COPY src src
RUN npm run --silent build && npm prune --omit=dev --ignore-scripts

FROM node:24-slim
# bubblewrap shuts the agent's commands in; tini collects the processes that they leave behind.
RUN apt-get update \
  && apt-get install -y --no-install-recommends bubblewrap tini \
  && rm -rf /var/lib/apt/lists/*
COPY --from=build /switchboard/package.json /opt/switchboard/package.json
COPY --from=build /switchboard/node_modules /opt/switchboard/node_modules
COPY --from=build /switchboard/dist /opt/switchboard/dist
RUN ln -s /opt/switchboard/dist/cli.js /usr/local/bin/switchboard \
  && install -d -o node -g node -m 0700 /data /workspaces
USER node
WORKDIR /data
VOLUME /data
ENV NODE_ENV=production \
  SWITCHBOARD_DATA_DIR=/data \
  RELAY_ADDR=0.0.0.0:8765 \
  RELAY_SIM_ADDR=0.0.0.0:8766 \
  AGENT_ADDR=0.0.0.0:3000 \
  HEALTH_URL=http://127.0.0.1:8765/ready
EXPOSE 8765 8766 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(process.env.HEALTH_URL).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["tini", "--", "switchboard"]
CMD ["up"]

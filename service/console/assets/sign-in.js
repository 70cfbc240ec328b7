// Exchanges the token of the link, which is in the fragment and so in no request line, for a session.
const message = document.getElementById("message");

async function signIn(token) {
  const response = await fetch("/console/api/session", {
    method: "POST",
    headers: { ...(token && { authorization: `Bearer ${token}` }), "x-rowcall-console": "1" },
  });
  if (response.ok) {
    location.replace("/console/");
  } else {
    message.textContent = (await response.json()).detail;
  }
}

document.getElementById("form").addEventListener("submit", (event) => {
  event.preventDefault();
  signIn(document.getElementById("token").value.trim());
});
document.getElementById("own-session").addEventListener("click", () => signIn(""));
const token = decodeURIComponent(location.hash.slice(1));
history.replaceState(null, "", location.pathname);
if (token) signIn(token);
